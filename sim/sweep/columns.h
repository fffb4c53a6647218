#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/simulation/simulation.h"

namespace ballast::sim {

/// One figure of a finished run: a column of a sweep's results.
struct RunColumn {
  std::string name;     ///< "final_max_violation"
  std::string header;   ///< the same in a narrow table
  std::string meaning;  ///< one sentence
  bool less_is_better = true;
  /// Nothing when the run has no such value, for example when it never came to balance; in
  /// rankings that is worse than any number.
  std::optional<double> (*measure)(const Simulation& run) = nullptr;
};

/// All columns, in the order of the results. A new figure of runs is one more entry.
const std::vector<RunColumn>& run_columns();
/// The place of a column among them.
std::optional<std::size_t> find_column(std::string_view name);

}  // namespace ballast::sim
