#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/sweep/run_result.h"

namespace ballast::sim {

/// A figure over the seeds of a point. A run without the value counts as worse than any number: the
/// median is empty when that is the middle one. Of an even number of runs it is the mean of the
/// middle two, and the worse of them when one is infinite. Least and most are of the runs that have
/// it.
struct Spread {
  std::optional<double> median, least, most;
  std::size_t values = 0;  ///< runs that have it

  /// Half of most - least, when both are finite.
  std::optional<double> half_range() const;
};

/// `values` in any order; `less_is_better` says on which side runs without a value stand.
Spread spread_of(std::vector<std::optional<double>> values, bool less_is_better);

/// A point, over its seeds.
struct PointSummary {
  std::size_t point = 0;
  std::size_t runs = 0;    ///< that came to their end
  std::size_t errors = 0;  ///< that did not
  std::string first_error;
  std::optional<Verdict> verdict = std::nullopt;  ///< of all runs; nothing when nothing is expected
  std::map<std::string, std::size_t> collapse_kinds = {};  ///< runs of each kind
  std::vector<Spread> columns = {};

  /// The kind that most runs have; of several, the first that is not "none".
  std::string collapse_kind() const;
};

/// `results` of all runs, in their order; one summary a point.
std::vector<PointSummary> summarize(const std::vector<RunResult>& results, const Sweep& sweep);

/// Sorts by the median of a column, the best first; points without one last; equal ones by number.
void rank(std::vector<PointSummary>& points, std::size_t column);

/// All runs that have this value on this axis.
struct AxisSummary {
  std::string axis;
  Json label;
  std::size_t runs = 0;
  std::vector<Spread> columns;
};

/// One for each value of each axis that has at most `most_values`, in the order of the file.
std::vector<AxisSummary> summarize_axes(const std::vector<RunResult>& results, const Sweep& sweep,
                                        std::size_t most_values = 12);

/// summary.json: name, runs, errors, `points` as they are ranked, and `axes`.
Json summary_json(const Sweep& sweep, const std::vector<RunResult>& results,
                  std::size_t rank_column);

/// results.csv: a line a run, its axes and columns side by side, as RFC 4180 has it.
std::string results_csv(const std::vector<RunResult>& results, const Sweep& sweep);

/// A label as a word of a table: text without quotes, numbers as they are.
std::string label_text(const Json& label);

}  // namespace ballast::sim
