#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ballast::sim {

/// The load shares of each layer of a recording of routing (sim/recordings/read_recording.h: rows
/// of choices, or tables of loads), `[layers][experts]`, of its first trace, warm-up rows left
/// out. Read once for each file. Throws InputError when it cannot be read or has no layer of
/// `experts` experts with a load.
const std::vector<std::vector<double>>& recorded_shares(const std::string& file,
                                                        std::size_t experts);

}  // namespace ballast::sim
