#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/scenario/field.h"
#include "sim/sweep/axis.h"
#include "sim/sweep/points.h"

/// The fields of sweep files: reading and their JSON Schema come from them.
namespace ballast::sim {

template <>
inline constexpr std::array<std::string_view, 3> words_of<SweepMode> = {"grid", "zip", "random"};

/// A sweep file but for its base and its axes.
struct SweepSettings {
  std::string name = "unnamed";
  std::string description;
  SweepMode mode = SweepMode::grid;
  std::size_t budget = 100;
  std::uint64_t sampling_seed = 1;
  std::size_t seeds = 1;
};
const std::vector<Field<SweepSettings>>& sweep_fields();

/// An axis but for its values.
struct AxisHeading {
  std::string name;
  std::string field;
};
const std::vector<Field<AxisHeading>>& heading_fields();

/// A value of an axis of groups but for what it sets.
struct AxisGroup {
  std::string label;
};
const std::vector<Field<AxisGroup>>& group_fields();

const std::vector<Field<AxisRange>>& range_fields();

}  // namespace ballast::sim
