#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/scenario/field_type.h"
#include "sim/shrink/target.h"

namespace ballast::sim {

/// One smaller scenario that was run.
struct Attempt {
  std::string path;  ///< the field that was made smaller
  Json from, to;
  bool kept = false;  ///< whether it still shows the target
};

struct Shrunk {
  Scenario scenario;  ///< the smallest found
  std::vector<Attempt> attempts;
  bool complete = false;  ///< nothing tried makes it smaller; false: the budget ran out before
};

/// Makes a scenario smaller, field by field, as long as its run shows the target: sizes by
/// bisection between the least value and the present one, other fields by taking them back to their
/// defaults; over and over, until nothing helps or `budget` scenarios were run. Deterministic: the
/// same on any number of threads. `tell` hears of each attempt as it is made.
Shrunk shrink(const Aim& aim, std::size_t budget, std::size_t threads,
              const std::function<void(const Attempt&)>& tell);

}  // namespace ballast::sim
