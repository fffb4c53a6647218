#pragma once

#include <string>
#include <vector>

#include "sim/scenario/field.h"
#include "sim/scenario/scenario.h"

/// The registry: every field of a scenario file, once.
namespace ballast::sim {

/// The format of scenario files that this program reads and writes: the value of the key "ballast".
inline constexpr int scenario_format = 1;

/// Name and description of a variant; what it sets and expects is made of the other two lists.
struct VariantHeading {
  std::string name;
  std::string description;
};

/// Fields of a scenario, in the order of the file.
const std::vector<Field<Scenario>>& scenario_fields();
/// Fields of one entry of "expect".
const std::vector<Field<Expectation>>& expectation_fields();
/// Fields of one entry of "variants", but for "set" and "expect".
const std::vector<Field<VariantHeading>>& variant_fields();

/// What an expectation can be about.
const std::vector<std::string>& metric_names();

}  // namespace ballast::sim
