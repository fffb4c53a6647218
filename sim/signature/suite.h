#pragma once

#include <vector>

#include "sim/scenario/scenario_file.h"

namespace ballast::sim {

/// The scenarios of the signature that every build has in it: short runs of a small model under
/// every balancer, rule, loss and score function, of routers alone under drawn scores, and the
/// first steps of the quickstart.
std::vector<ScenarioFile> suite_scenarios();

/// The small model in training: the common part of the first of these.
Scenario suite_training();

}  // namespace ballast::sim
