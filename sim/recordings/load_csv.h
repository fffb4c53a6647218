#pragma once

#include <string>
#include <vector>

#include "sim/recordings/line_reader.h"
#include "sim/recordings/read_recording.h"

namespace ballast::sim {

/// The fields of a CSV line; a field in double quotes may hold commas and doubled quotes.
std::vector<std::string> split_csv(const std::string& line);

/// Whether these are the columns of a table of load counts: expert, and count or count_topk.
bool is_load_header(const std::vector<std::string>& columns);

/// Reads a table of load counts whose header is the next line. With a column token_id, the counts
/// of an expert are the sum over tokens; without, each expert of a layer has one row.
std::vector<RecordedRouting> read_load_csv(LineReader& lines, const ReadSettings& settings);

}  // namespace ballast::sim
