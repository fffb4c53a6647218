#pragma once

#include <vector>

#include "sim/scenario/field.h"
#include "sim/scenario/scenario.h"

namespace ballast::sim {

/// The fields of the group "balancer", in the order of the file: a part of scenario_fields().
std::vector<Field<Scenario>> balancer_fields();

}  // namespace ballast::sim
