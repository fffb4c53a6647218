#pragma once

#include <string>
#include <vector>

#include "sim/scenario/scenario_file.h"
#include "sim/simulation/simulation.h"
#include "sim/simulation/verdict.h"

namespace ballast::sim {

/// What a finished run came to, as JSON: name, verdict, digest, steps, final (the metrics of the
/// last step), expectations, events. A number that is not finite is null.
Json summary_json(const Simulation& run);

/// The summary of the runs of a scenario file. With variants: `variants` holds one summary each, in
/// order; `digest` covers all, `expectations` are all of them with their variant's name, `steps`
/// and `final` are the last one's.
Json summary_json(const ScenarioFile& file, const std::vector<const Simulation*>& runs);

/// The digest of that summary: the run's own, or with variants that of all their digests.
std::string digest_of(const ScenarioFile& file, const std::vector<const Simulation*>& runs);

/// The files of JSON lines, by what a line is.
std::string metrics_lines(const Simulation& run);      ///< one an optimizer step
std::string diagnostics_lines(const Simulation& run);  ///< one a log interval
std::string evaluation_lines(const Simulation& run);   ///< one an evaluation

}  // namespace ballast::sim
