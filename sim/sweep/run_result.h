#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/field_type.h"
#include "sim/simulation/verdict.h"
#include "sim/sweep/sweep_file.h"

namespace ballast::sim {

/// What one run of a sweep came to.
struct RunResult {
  std::size_t run = 0;
  std::optional<std::string> error = std::nullopt;  ///< why there is no result
  bool expected = false;                            ///< whether the scenario expects anything
  Verdict verdict = Verdict::unknown;
  std::string digest = {};
  std::string collapse_kind = {};                  ///< see collapse_kind in columns.h
  std::vector<std::optional<double>> values = {};  ///< by column
};

/// The result of a finished run.
RunResult result_of(std::size_t run, const Simulation& simulation);

/// A line of results.jsonl: run, point, axes, seed; then error, or verdict (null when nothing is
/// expected), digest, collapse_kind and the columns.
Json to_json(const RunResult& result, const Sweep& sweep);
/// Reads it back; nothing when it is no such line of this sweep.
std::optional<RunResult> read_result(const Json& line, const Sweep& sweep);

}  // namespace ballast::sim
