#pragma once

#include <cstddef>
#include <vector>

#include "core/matrix.h"

namespace ballast {

/// The (position + 1)-th smallest value of every column, so position 0 is the column's minimum. The
/// result depends only on the multiset of each column's values, not on the order of the rows.
/// `values` is `[rows, cols]`, without NaN and without negative zeros; position < rows.
/// Linear in rows * cols on average.
std::vector<float> column_order_statistics(MatrixView<const float> values, std::size_t position);

}  // namespace ballast
