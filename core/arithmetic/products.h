#pragma once

#include "core/executor.h"
#include "core/matrix.h"

/// Matrix products with a defined order of summation, for every shape, vector width and number of threads.
/// An entry depends on its own row and column alone: never on how many other rows there are.
///
/// For float and double. Dimensions must match as written, and `out` must not overlap with `a` or `b`; any
/// dimension may be 0, and a sum of no terms is +0. Errors of entries are those of `dot`. A NaN entry is the
/// one quiet NaN of std::numeric_limits. Time is m n p; nothing is allocated, up to 1 MiB of stack is used. The
/// executor gets pieces of the output, if there is enough work for more than one thread; nothing is thrown but what
/// it throws.
namespace ballast::arithmetic {

/// out[m, n] = a[m, p] * b[n, p]^T. Entry (i, j) equals `dot(a.row(i), b.row(j))` to the bit.
/// The forward product of a linear layer: tokens `[tokens, in]` with weights `[out, in]`.
template <class Real>
void multiply_transposed(MatrixView<const Real> a, MatrixView<const Real> b, MatrixView<Real> out,
                         const Executor& executor);

/// out[m, n] = a[m, p] * b[p, n]. Entry (i, j) equals the `dot` of a's row and b's column to the
/// bit. The backward product of a linear layer to its input.
template <class Real>
void multiply(MatrixView<const Real> a, MatrixView<const Real> b, MatrixView<Real> out,
              const Executor& executor);

/// out[n, p] += a[m, n]^T * b[m, p]: one chain of fused multiply-adds an entry, over the rows of a
/// and b in order, that starts from the value already in `out`. So accumulating two batches one
/// after the other gives the bits of accumulating both at once: gradients do not depend on how a
/// global batch is split into micro-batches. The backward product of a linear layer to its weights.
template <class Real>
void accumulate_transposed(MatrixView<const Real> a, MatrixView<const Real> b, MatrixView<Real> out,
                           const Executor& executor);

}  // namespace ballast::arithmetic
