#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/field_type.h"
#include "sim/simulation/simulation.h"

namespace ballast::sim {

/// One figure of a finished run: a column of a sweep's results.
struct RunColumn {
  std::string name;     ///< "final_max_violation"
  std::string header;   ///< the same in a narrow table
  std::string meaning;  ///< one sentence
  bool less_is_better = true;
  /// Nothing when the run has no such value, for example when it never came to balance; in
  /// rankings that is worse than any number. Infinite for what never came and is better so.
  std::optional<double> (*measure)(const Simulation& run) = nullptr;
  /// Whether nothing means that it cannot be told, and such a run is left out of comparisons.
  bool unknown_when_absent = false;
};

/// All columns, in the order of the results. A new figure of runs is one more entry.
const std::vector<RunColumn>& run_columns();
/// The place of a column among them.
std::optional<std::size_t> find_column(std::string_view name);

/// The collapse of a run: the kind of its first finding that is one, "none" when there is none,
/// else why it cannot be told: "input_degenerate" or "unknown".
std::string_view collapse_kind(const CollapseReport& report);

/// A figure as it stands in results: a number, "none" when it is infinite, null when there is none.
Json figure_json(const std::optional<double>& figure);
/// Reads it back; false for anything else.
bool read_figure(const Json& value, std::optional<double>& figure);

}  // namespace ballast::sim
