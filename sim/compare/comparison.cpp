#include "sim/compare/comparison.h"

#include <algorithm>

#include "sim/compare/effect_size.h"

namespace ballast::sim {
namespace {

using Values = std::vector<std::optional<double>>;

/// Whatever order axes were written in, and 2 is 2.0.
nlohmann::json unordered(const Json& axes) {
  return nlohmann::json(axes);
}

const ResultPoint* point_at(const ResultSet& set, const Json& axes) {
  const auto found = std::ranges::find(
      set.points, unordered(axes), [](const ResultPoint& point) { return unordered(point.axes); });
  return found == set.points.end() ? nullptr : &*found;
}

Values values_of(const ResultPoint& point, const std::string& column) {
  const auto found = point.figures.find(column);
  return found == point.figures.end() ? Values{} : found->second;
}

FigureComparison compare_figures(const Values& a, const Values& b) {
  FigureComparison figures{
      .a = median(a), .b = median(b), .difference = std::nullopt, .delta = cliffs_delta(a, b)};
  // Equal ones can be infinite.
  if (figures.a && figures.b) {
    figures.difference = *figures.a == *figures.b ? 0.0 : *figures.b - *figures.a;
  }
  return figures;
}

ColumnComparison compare_column(const std::string& name, std::size_t column,
                                const std::vector<PointComparison>& points) {
  ColumnComparison all{
      .column = name, .median_difference = std::nullopt, .mean_delta = std::nullopt};
  Values differences;
  double sum = 0.0;
  std::size_t deltas = 0;
  for (const PointComparison& point : points) {
    const FigureComparison& figures = point.figures[column];
    if (figures.delta) sum += *figures.delta, ++deltas;
    if (!figures.difference) continue;
    differences.push_back(figures.difference);
    ++(*figures.difference < 0.0 ? all.lower : *figures.difference > 0.0 ? all.higher : all.equal);
  }
  all.median_difference = median(differences);
  if (deltas > 0) all.mean_delta = sum / static_cast<double>(deltas);
  return all;
}

}  // namespace

Comparison compare_results(const ResultSet& a, const ResultSet& b) {
  Comparison result;
  std::vector<std::string> columns;
  for (const std::string& column : a.columns) {
    if (std::ranges::find(b.columns, column) != b.columns.end()) columns.push_back(column);
  }
  for (const ResultPoint& point : a.points) {
    const ResultPoint* other = point_at(b, point.axes);
    if (other == nullptr) continue;
    PointComparison both{.axes = point.axes, .figures = {}};
    for (const std::string& column : columns) {
      both.figures.push_back(compare_figures(values_of(point, column), values_of(*other, column)));
    }
    result.points.push_back(std::move(both));
  }
  for (std::size_t c = 0; c < columns.size(); ++c)
    result.columns.push_back(compare_column(columns[c], c, result.points));
  result.only_a = a.points.size() - result.points.size();
  result.only_b = static_cast<std::size_t>(std::ranges::count_if(
      b.points, [&](const ResultPoint& point) { return point_at(a, point.axes) == nullptr; }));
  return result;
}

}  // namespace ballast::sim
