#include "core/arithmetic/products.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/arithmetic/reductions.h"
#include "core/arithmetic/vector.h"

namespace ballast::arithmetic {
namespace {

/// A matrix by the distances between its entries, so that a transpose is a matrix too.
template <class Real>
struct Strided {
  const Real* data;
  std::size_t row_stride;
  std::size_t col_stride;
  const Real* at(std::size_t i, std::size_t j) const {
    return data + i * row_stride + j * col_stride;
  }
};

/// What a block of the summed dimension does with the output.
enum class Block {
  first,      ///< a new chain from +0 becomes the output
  next,       ///< a new chain from +0 is added to the output
  continued,  ///< the chain goes on from the output
};

// A tile of the output is held in registers: `tile_rows` rows of `tile_vectors` vectors.
constexpr std::size_t tile_rows = 6;
constexpr std::size_t tile_vectors = 2;
template <class Real>
constexpr std::size_t tile_cols = tile_vectors* lanes<Real>;

/// Columns of the right factor, packed: `tile_cols` values for each of up to `block_size` summed
/// indices.
template <class Real>
using Panel = std::array<Real, block_size * tile_cols<Real>>;

/// out[rows, tile_cols] of a[rows, depth] times b[depth, tile_cols]; `b_stride` and `out_stride`
/// are distances between rows.
template <std::size_t rows, class Real>
void multiply_tile(Strided<Real> a, const Real* b, std::size_t b_stride, std::size_t depth,
                   Real* out, std::size_t out_stride, Block block) {
  Vector<Real> sums[rows][tile_vectors];
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t v = 0; v < tile_vectors; ++v) {
      sums[i][v] =
          block == Block::continued ? load(out + i * out_stride + v * lanes<Real>) : Vector<Real>{};
    }
  }
  for (std::size_t p = 0; p < depth; ++p) {
    Vector<Real> columns[tile_vectors];
    for (std::size_t v = 0; v < tile_vectors; ++v)
      columns[v] = load(b + p * b_stride + v * lanes<Real>);
    for (std::size_t i = 0; i < rows; ++i) {
      const Vector<Real> factor = broadcast(*a.at(i, p));
      for (std::size_t v = 0; v < tile_vectors; ++v) {
        sums[i][v] = fused(factor, columns[v], sums[i][v]);
      }
    }
  }
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t v = 0; v < tile_vectors; ++v) {
      Real* place = out + i * out_stride + v * lanes<Real>;
      if (block == Block::next) sums[i][v] = load(place) + sums[i][v];
      store<Real>(canonical<Real>(sums[i][v]), place);
    }
  }
}

template <class Real>
void multiply_tile(std::size_t rows, Strided<Real> a, const Real* b, std::size_t b_stride,
                   std::size_t depth, Real* out, std::size_t out_stride, Block block) {
  switch (rows) {
    case 1:
      return multiply_tile<1>(a, b, b_stride, depth, out, out_stride, block);
    case 2:
      return multiply_tile<2>(a, b, b_stride, depth, out, out_stride, block);
    case 3:
      return multiply_tile<3>(a, b, b_stride, depth, out, out_stride, block);
    case 4:
      return multiply_tile<4>(a, b, b_stride, depth, out, out_stride, block);
    case 5:
      return multiply_tile<5>(a, b, b_stride, depth, out, out_stride, block);
    default:
      return multiply_tile<tile_rows>(a, b, b_stride, depth, out, out_stride, block);
  }
}

/// The tile of `rows` x `cols` at the edge of the output, through a whole tile beside it.
template <class Real>
void multiply_edge(std::size_t rows, std::size_t cols, Strided<Real> a, const Real* b,
                   std::size_t b_stride, std::size_t depth, Real* out, std::size_t out_stride,
                   Block block) {
  std::array<Real, tile_rows * tile_cols<Real>> tile{};
  for (std::size_t i = 0; i < rows; ++i) {
    std::copy_n(out + i * out_stride, cols, tile.data() + i * tile_cols<Real>);
  }
  multiply_tile(rows, a, b, b_stride, depth, tile.data(), tile_cols<Real>, block);
  for (std::size_t i = 0; i < rows; ++i) {
    std::copy_n(tile.data() + i * tile_cols<Real>, cols, out + i * out_stride);
  }
}

/// Packs b[depth, cols], cols <= tile_cols, with zeros in the columns beyond.
template <class Real>
void pack(Strided<Real> b, std::size_t depth, std::size_t cols, Panel<Real>& panel) {
  constexpr std::size_t width = tile_cols<Real>;
  if (b.col_stride == 1) {
    for (std::size_t p = 0; p < depth; ++p) {
      std::copy_n(b.at(p, 0), cols, panel.data() + p * width);
      std::fill_n(panel.data() + p * width + cols, width - cols, Real(0));
    }
    return;
  }
  if (cols < width) std::fill_n(panel.data(), depth * width, Real(0));
  for (std::size_t j = 0; j < cols; ++j) {
    for (std::size_t p = 0; p < depth; ++p) panel[p * width + j] = *b.at(p, j);
  }
}

/// Part of a product: out[rows, cols] of a[rows, depth] and b[depth, cols], with the sum over
/// `depth` in blocks.
template <class Real>
struct Product {
  Strided<Real> a;
  Strided<Real> b;
  Real* out;
  std::size_t out_stride;
  std::size_t rows;
  std::size_t cols;
  std::size_t depth;
  bool accumulate;  ///< one chain from what is in `out`, instead of a sum of blocks
};

/// All rows of the output columns [j, j + cols), cols <= tile_cols.
template <class Real>
void multiply_panel(const Product<Real>& product, std::size_t j, std::size_t cols) {
  Panel<Real> panel;
  for (std::size_t p = 0; p < product.depth; p += block_size) {
    const std::size_t depth = std::min(block_size, product.depth - p);
    const Block block = product.accumulate ? Block::continued : p == 0 ? Block::first : Block::next;
    const Strided<Real> b{product.b.at(p, j), product.b.row_stride, product.b.col_stride};
    pack(b, depth, cols, panel);
    for (std::size_t i = 0; i < product.rows; i += tile_rows) {
      const std::size_t rows = std::min(tile_rows, product.rows - i);
      const Strided<Real> a{product.a.at(i, p), product.a.row_stride, product.a.col_stride};
      Real* out = product.out + i * product.out_stride + j;
      if (cols == tile_cols<Real>) {
        multiply_tile(rows, a, panel.data(), tile_cols<Real>, depth, out, product.out_stride,
                      block);
      } else {
        multiply_edge(rows, cols, a, panel.data(), tile_cols<Real>, depth, out, product.out_stride,
                      block);
      }
    }
  }
}

template <class Real>
void multiply_piece(const Product<Real>& product) {
  for (std::size_t j = 0; j < product.cols; j += tile_cols<Real>) {
    multiply_panel(product, j, std::min(tile_cols<Real>, product.cols - j));
  }
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

/// Cuts the output, never the sums, into pieces that are large enough to be worth a thread's while.
template <class Real>
void run(const Product<Real>& product, const Executor& executor) {
  constexpr std::size_t piece_rows = 32 * tile_rows;
  constexpr std::size_t piece_cols = 64;
  constexpr std::size_t small = 128 * 1024;
  const std::size_t down = (product.rows + piece_rows - 1) / piece_rows;
  const std::size_t across = (product.cols + piece_cols - 1) / piece_cols;
  if (down * across <= 1 || product.rows * product.cols * product.depth <= small) {
    return multiply_piece(product);
  }
  executor.for_each(down * across, [&](std::size_t piece) {
    const std::size_t i = piece / across * piece_rows;
    const std::size_t j = piece % across * piece_cols;
    multiply_piece(part(product, i, piece_rows, j, piece_cols));
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
