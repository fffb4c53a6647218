#pragma once

#include "sim/scenario/field_type.h"

namespace ballast::sim {

/// The JSON Schema (draft 2020-12) of scenario files, made from the registry of fields. It accepts
/// every file that the program reads, and refuses what can be told without comparing two values;
/// the program checks the rest (contradictions.h).
Json scenario_schema();

}  // namespace ballast::sim
