#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace ballast::sim {

struct Scenario;

/// From a step on, some fields have other values.
struct ScheduleEntry {
  std::size_t from = 1;  ///< first step that they act on
  std::size_t over = 0;  ///< steps over which numbers move evenly to them; 0: at once
  std::map<std::string, std::string> set;  ///< JSON values by path
};

/// Whether a field may change over the steps: those of drawn scores, of how tokens are drawn, and
/// the learning rate. All else is the shape of the run.
bool may_be_scheduled(const std::string& path);

/// The scenario with the values that its fields have at a step (from 1). Entries apply in their
/// order; during its `over` steps an entry moves numbers from what they would be without it.
Scenario settings_at(const Scenario& scenario, std::size_t step);

/// The steps at which an entry begins to act or is still moving numbers, in ascending order.
std::vector<std::size_t> steps_of_change(const Scenario& scenario);

}  // namespace ballast::sim
