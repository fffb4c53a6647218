#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "sim/sweep/run_result.h"
#include "sim/sweep/sweep_file.h"

namespace ballast::sim {

/// How a sweep uses the machine; no result depends on it.
struct Workers {
  std::size_t jobs = 1;     ///< runs at a time
  std::size_t threads = 1;  ///< of each run
};

/// Makes these runs of a sweep, several at a time, and hands over each result as it comes, one at a
/// time, from whichever thread made it. What goes wrong in a run is its result and stops no other.
/// When `done` throws, the runs under way are given up, and its exception comes out here.
void run_sweep(const Sweep& sweep, std::span<const std::size_t> runs, Workers workers,
               const std::function<void(const RunResult&)>& done);

}  // namespace ballast::sim
