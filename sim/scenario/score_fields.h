#pragma once

#include <vector>

#include "sim/scenario/field.h"
#include "sim/scenario/scenario.h"

namespace ballast::sim {

/// The fields of the group "scores", in the order of the file: a part of scenario_fields().
std::vector<Field<Scenario>> score_fields();
/// Fields of one entry of "schedule", but for "set".
const std::vector<Field<ScheduleEntry>>& schedule_fields();

}  // namespace ballast::sim
