#pragma once

#include <string>
#include <vector>

#include "sim/scenario/field_type.h"
#include "sim/simulation/simulation.h"
#include "sim/simulation/verdict.h"

namespace ballast::sim {

/// What a finished run came to, as JSON: name, verdict, digest, steps, final (the metrics of the last step),
/// expectations, events. A number that is not finite is null.
Json summary_json(const Simulation& run);

/// The summary of several variants run side by side: `variants` holds one summary each, in order; `digest`
/// covers all, `expectations` are all of them with their variant's name, `final` is the last one's.
Json summary_json(const std::string& name, const std::vector<const Simulation*>& runs);

/// The files of JSON lines, by what a line is.
std::string metrics_lines(const Simulation& run);      ///< one an optimizer step
std::string diagnostics_lines(const Simulation& run);  ///< one a log interval
std::string evaluation_lines(const Simulation& run);   ///< one an evaluation

}  // namespace ballast::sim
