#include "core/arithmetic/products.h"

#include <algorithm>
#include <cstddef>

#include "core/arithmetic/reductions.h"
#include "core/kernels/kernels.h"

namespace ballast::arithmetic {
namespace {

using kernels::Product;
using kernels::Strided;

static_assert(kernels::product_block == block_size);

void multiply_piece(const Product<float>& product) {
  kernels::active().multiply(product);
}
void multiply_piece(const Product<double>& product) {
  kernels::active().multiply_double(product);
}

/// Rows [i, i + rows) and columns [j, j + cols) of a product.
template <class Real>
Product<Real> part(Product<Real> product, std::size_t i, std::size_t rows, std::size_t j,
                   std::size_t cols) {
  product.a.data = product.a.at(i, 0);
  product.b.data = product.b.at(0, j);
  product.out += i * product.out_stride + j;
  product.rows = std::min(rows, product.rows - i);
  product.cols = std::min(cols, product.cols - j);
  return product;
}

/// Rows of a piece: many, since each piece packs its factors, but so few that every thread has some
/// pieces; and whole tiles of every target.
std::size_t piece_rows_for(std::size_t rows, std::size_t pieces_across) {
  constexpr std::size_t pieces_wanted = 16, whole_tiles = 42;
  const std::size_t tiles = rows * pieces_across / pieces_wanted / whole_tiles + 1;
  return std::min(tiles * whole_tiles, kernels::product_rows_max);
}

/// Cuts the output, never the sums, into pieces that go to threads if there is enough to do.
template <class Real>
void run(const Product<Real>& product, const Executor& executor) {
  constexpr std::size_t small = 1024 * 1024, piece_cols = kernels::product_cols_max;
  const bool whole = product.rows * product.cols * product.depth <= small;
  const std::size_t across = (product.cols + piece_cols - 1) / piece_cols;
  const std::size_t piece_rows =
      whole ? kernels::product_rows_max : piece_rows_for(product.rows, across);
  const std::size_t down = (product.rows + piece_rows - 1) / piece_rows;
  if (down * across == 1) return multiply_piece(product);
  const Executor& pieces = whole ? serial_executor() : executor;
  pieces.for_each(down * across, [&](std::size_t piece) {
    multiply_piece(part(product, piece / across * piece_rows, piece_rows,
                        piece % across * piece_cols, piece_cols));
  });
}

template <class Real>
Strided<Real> rows_of(MatrixView<const Real> matrix) {
  return {matrix.data(), matrix.cols(), 1};
}

template <class Real>
Strided<Real> transpose_of(MatrixView<const Real> matrix) {
  return {matrix.data(), 1, matrix.cols()};
}

template <class Real>
void multiply_strided(Strided<Real> a, Strided<Real> b, std::size_t depth, MatrixView<Real> out,
                      const Executor& executor) {
  if (depth == 0) return std::fill_n(out.data(), out.rows() * out.cols(), Real(0)), void();
  run(Product<Real>{a, b, out.data(), out.cols(), out.rows(), out.cols(), depth, false}, executor);
}

}  // namespace

template <class Real>
void multiply_transposed(MatrixView<const Real> a, MatrixView<const Real> b, MatrixView<Real> out,
                         const Executor& executor) {
  multiply_strided(rows_of(a), transpose_of(b), a.cols(), out, executor);
}

template <class Real>
void multiply(MatrixView<const Real> a, MatrixView<const Real> b, MatrixView<Real> out,
              const Executor& executor) {
  multiply_strided(rows_of(a), rows_of(b), a.cols(), out, executor);
}

template <class Real>
void accumulate_transposed(MatrixView<const Real> a, MatrixView<const Real> b, MatrixView<Real> out,
                           const Executor& executor) {
  run(Product<Real>{transpose_of(a), rows_of(b), out.data(), out.cols(), out.rows(), out.cols(),
                    a.rows(), true},
      executor);
}

template void multiply_transposed(MatrixView<const float>, MatrixView<const float>,
                                  MatrixView<float>, const Executor&);
template void multiply_transposed(MatrixView<const double>, MatrixView<const double>,
                                  MatrixView<double>, const Executor&);
template void multiply(MatrixView<const float>, MatrixView<const float>, MatrixView<float>,
                       const Executor&);
template void multiply(MatrixView<const double>, MatrixView<const double>, MatrixView<double>,
                       const Executor&);
template void accumulate_transposed(MatrixView<const float>, MatrixView<const float>,
                                    MatrixView<float>, const Executor&);
template void accumulate_transposed(MatrixView<const double>, MatrixView<const double>,
                                    MatrixView<double>, const Executor&);

}  // namespace ballast::arithmetic
