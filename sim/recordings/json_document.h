#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/recordings/read_recording.h"

namespace ballast::sim {

/// Whether this object is a recording as a whole: `selections` or `load`.
bool is_recording_document(const nlohmann::json& object);

/// The loads of `selections[token][layer][top_k]` (with topK and expertsPerLayer beside it), or of
/// `load[layer][expert]`. Throws InputError with the JSON pointer of what is wrong; faulty
/// selections are problems, like faulty rows.
RecordedRouting read_json_document(const nlohmann::json& document, const std::string& path,
                                   const ReadSettings& settings);

}  // namespace ballast::sim
