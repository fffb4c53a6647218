#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>

#include "sim/recordings/line_reader.h"
#include "sim/recordings/read_recording.h"

namespace ballast::sim {

/// The JSON object of a line, or nothing when it is none.
std::optional<nlohmann::json> parse_object(const std::string& line);

/// The fields of the rows that the object belongs to, when it is a row (or meta line) of a known
/// kind.
std::optional<RowSchema> known_schema(const nlohmann::json& object);

/// Reads rows by a schema, which need not be of a known kind. `head`: the first lines of the file,
/// as peeked, in which E and k are looked for.
RecordedRouting read_json_lines(LineReader& lines, std::span<const Line> head,
                                const RowSchema& schema, const ReadSettings& settings);

}  // namespace ballast::sim
