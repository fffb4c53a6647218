#include "core/balancers/order_statistics.h"

#include <algorithm>

namespace ballast {

namespace {

/// Columns copied out together: one cache line of a row.
constexpr std::size_t columns_at_once = 16;

/// Copies columns [first, first + count) so that each one is contiguous.
void gather_columns(MatrixView<const float> values, std::size_t first, std::size_t count,
                    std::span<float> out) {
  for (std::size_t i = 0; i < values.rows(); ++i) {
    const auto row = values.row(i).subspan(first, count);
    for (std::size_t j = 0; j < count; ++j) out[j * values.rows() + i] = row[j];
  }
}

float order_statistic(std::span<float> values, std::size_t position) {
  const auto target = values.begin() + static_cast<std::ptrdiff_t>(position);
  std::nth_element(values.begin(), target, values.end());
  return *target;
}

}  // namespace

std::vector<float> column_order_statistics(MatrixView<const float> values, std::size_t position) {
  const std::size_t rows = values.rows();
  std::vector<float> statistics;
  statistics.reserve(values.cols());
  std::vector<float> columns(rows * std::min(columns_at_once, values.cols()));
  for (std::size_t first = 0; first < values.cols(); first += columns_at_once) {
    const std::size_t count = std::min(columns_at_once, values.cols() - first);
    gather_columns(values, first, count, columns);
    for (std::size_t j = 0; j < count; ++j) {
      statistics.push_back(order_statistic(std::span(columns).subspan(j * rows, rows), position));
    }
  }
  return statistics;
}

}  // namespace ballast
