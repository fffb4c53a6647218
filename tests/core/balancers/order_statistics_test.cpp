#include "core/balancers/order_statistics.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "tests/core/support/bits.h"
#include "tests/core/support/routing_cases.h"

namespace ballast {
namespace {

RC_GTEST_PROP(OrderStatistics, AreTheEntriesOfTheSortedColumns, ()) {
  const auto rows = *rc::gen::inRange<std::size_t>(1, 30);
  const auto cols = *rc::gen::inRange<std::size_t>(1, 40);  // more than one block of columns
  const auto values = oracle::drawn_multiples(rows * cols, -20, 20, 0.25f);
  const MatrixView<const float> matrix(values.data(), rows, cols);
  const auto position = *rc::gen::inRange<std::size_t>(0, rows);

  const auto statistics = column_order_statistics(matrix, position);
  RC_ASSERT(statistics.size() == cols);
  for (std::size_t j = 0; j < cols; ++j) {
    std::vector<float> column;
    for (std::size_t i = 0; i < rows; ++i) column.push_back(matrix(i, j));
    std::sort(column.begin(), column.end());
    RC_ASSERT(statistics[j] == column[position]);
  }
}

}  // namespace
}  // namespace ballast
