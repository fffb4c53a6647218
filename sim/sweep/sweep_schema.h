#pragma once

#include "sim/scenario/field_type.h"

namespace ballast::sim {

/// The JSON Schema (draft 2020-12) of sweep files, made from the registries of fields. It accepts
/// every file that the program reads, and refuses what can be told without comparing two values; of
/// a base in place it leaves the inside to scenario.schema.json, which stands beside it.
Json sweep_schema();

}  // namespace ballast::sim
