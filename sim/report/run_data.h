#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/scenario/field_type.h"

namespace ballast::sim {

/// Figures over steps, as a file of JSON lines holds them.
struct StepFigures {
  std::vector<double> steps;  ///< ascending
  /// By name a value for each step; NaN where a line has none or null.
  std::map<std::string, std::vector<double>> figures;
};

/// What the routed experts of a layer got in a log interval.
struct LayerLoads {
  std::string name;
  std::vector<std::int64_t> counts;  ///< [experts], assignments
};

/// One log interval, its layers in the order of the numbers in their names.
struct LoadInterval {
  std::int64_t first_step = 0, last_step = 0;
  std::vector<LayerLoads> layers;
};

/// What `ballast run --out` wrote of one run.
struct RunData {
  std::string name;
  Json summary;
  StepFigures metrics, evaluations;
  std::vector<LoadInterval> intervals;  ///< of all the layers are the same
  std::vector<std::string> missing;     ///< files that are not there, "none/eval.jsonl"
};

/// What `ballast run --out` wrote: one run, or one for each variant.
struct RunDirectory {
  Json summary;          ///< of all runs
  std::string scenario;  ///< the text of scenario.json, empty when it is missing
  std::vector<RunData> runs;
};

/// Reads such a directory. Only summary.json has to be there. Throws InputError, which names file
/// and line, for what is not as it was written, and for a directory of something else.
RunDirectory read_run_directory(const std::string& directory);

}  // namespace ballast::sim
