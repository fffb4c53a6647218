#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/compare/result_set.h"

namespace ballast::sim {

/// One figure of one setting in two result sets.
struct FigureComparison {
  std::optional<double> a, b;        ///< medians over seeds
  std::optional<double> difference;  ///< b - a
  std::optional<double> delta;       ///< Cliff's delta: above 0 when b tends to be larger
};

/// A setting that both sets have.
struct PointComparison {
  Json axes;
  std::vector<FigureComparison> figures;  ///< by column
};

/// One figure over all settings that both have.
struct ColumnComparison {
  std::string column;
  std::size_t lower = 0, equal = 0, higher = 0;  ///< points whose median in b is ...
  std::optional<double> median_difference;       ///< over points that have one
  std::optional<double> mean_delta;
};

struct Comparison {
  std::vector<ColumnComparison> columns;  ///< those that both sets have
  std::vector<PointComparison> points;    ///< in the order of the first set
  std::size_t only_a = 0, only_b = 0;     ///< points that the other one does not have
};

/// Sets two result sets side by side. Points are the same when all their axes have the same labels.
Comparison compare_results(const ResultSet& a, const ResultSet& b);

}  // namespace ballast::sim
