#pragma once

#include <cstddef>

#include "core/executor.h"
#include "core/model/module.h"

namespace ballast {

/// y = x W^T without a bias, W `[out, in]`. Initial weights have deviation 1 / sqrt(in).
template <class Real>
class Linear : public Module {
 public:
  Linear(std::size_t out, std::size_t in);

  /// x `[tokens, in]` to y `[tokens, out]`. 2 tokens in out operations.
  void forward(MatrixView<const Real> x, MatrixView<Real> y, const Executor& executor) const;
  /// dx `[tokens, in]` = dy W, from dy `[tokens, out]`.
  void backward_input(MatrixView<const Real> dy, MatrixView<Real> dx, const Executor& executor) const;
  /// Adds dy^T x to the gradient of W, token after token.
  void backward_weight(MatrixView<const Real> x, MatrixView<const Real> dy, const Executor& executor);

  Parameter<Real> weight;
};

}  // namespace ballast
