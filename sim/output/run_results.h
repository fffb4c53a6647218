#pragma once

#include <string>
#include <vector>

#include "sim/output/output_directory.h"
#include "sim/scenario/scenario_file.h"
#include "sim/simulation/simulation.h"

namespace ballast::sim {

/// Refuses variants whose results could not have a folder of their name: InputError. `origin` is
/// the file.
void check_result_folders(const ScenarioFile& file, const std::string& origin);

/// Writes the results of finished runs and commits the directory: scenario.json, metrics.jsonl,
/// diagnostics.jsonl, eval.jsonl and summary.json; with variants a folder of these for each, and
/// scenario.json and summary.json of all beside them. Every scenario.json can be run again, to the
/// digest of the summary.json beside it.
void write_results(OutputDirectory& directory, const ScenarioFile& file,
                   const std::vector<const Simulation*>& runs);

}  // namespace ballast::sim
