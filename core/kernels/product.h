#pragma once

#include <cstddef>

namespace ballast::kernels {

/// A matrix by the distances between its entries, so that a transpose is a matrix too.
template <class Real>
struct Strided {
  const Real* data = nullptr;
  std::size_t row_stride = 0;
  std::size_t col_stride = 0;
  const Real* at(std::size_t i, std::size_t j) const {
    return data + i * row_stride + j * col_stride;
  }
};

/// Sums over the middle dimension are taken in blocks of this many terms: arithmetic::block_size.
inline constexpr std::size_t product_block = 256;

/// A product, or a part of one that is no larger than product_rows_max x product_cols_max:
/// out[rows, cols] of a[rows, depth] and b[depth, cols], each entry one chain of fused
/// multiply-adds in order for every block of the sum, from +0, and the chains added in order. Or,
/// to `accumulate`, one chain over all from what is in `out`. NaN entries have the bits of the one
/// quiet NaN.
template <class Real>
struct Product {
  Strided<Real> a;
  Strided<Real> b;
  Real* out = nullptr;
  std::size_t out_stride = 0;  ///< between rows; columns are one after the other
  std::size_t rows = 0;
  std::size_t cols = 0;
  std::size_t depth = 0;
  bool accumulate = false;
};

inline constexpr std::size_t product_rows_max = 420;  ///< a multiple of every target's tile
inline constexpr std::size_t product_cols_max = 1024;

}  // namespace ballast::kernels
