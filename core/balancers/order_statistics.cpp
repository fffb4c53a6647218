#include "core/balancers/order_statistics.h"

#include <algorithm>
#include <span>

#include "core/kernels/kernels.h"

namespace ballast {

namespace {

/// Columns copied out together: one cache line of a row.
constexpr std::size_t columns_at_once = 16;

constexpr std::size_t room_behind = 16;  ///< kernels write whole vectors

/// Copies columns [first, first + count) so that each one is contiguous, `stride` values behind the one before it.
void gather_columns(MatrixView<const float> values, std::size_t first, std::size_t count, std::size_t stride,
                    std::span<float> out) {
  for (std::size_t i = 0; i < values.rows(); ++i) {
    const auto row = values.row(i).subspan(first, count);
    for (std::size_t j = 0; j < count; ++j) out[j * stride + i] = row[j];
  }
}

}  // namespace

std::vector<float> column_order_statistics(MatrixView<const float> values, std::size_t position) {
  const std::size_t rows = values.rows(), stride = rows + room_behind;
  std::vector<float> statistics;
  statistics.reserve(values.cols());
  std::vector<float> columns(stride * std::min(columns_at_once, values.cols()));
  std::vector<float> scratch(stride);
  for (std::size_t first = 0; first < values.cols(); first += columns_at_once) {
    const std::size_t count = std::min(columns_at_once, values.cols() - first);
    gather_columns(values, first, count, stride, columns);
    for (std::size_t j = 0; j < count; ++j) {
      float* const column = columns.data() + j * stride;
      statistics.push_back(kernels::active().order_statistic(column, scratch.data(), rows, position));
    }
  }
  return statistics;
}

}  // namespace ballast
