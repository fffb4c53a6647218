#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/model/module.h"

namespace ballast {

/// y_i = g_i x_i / sqrt(mean(x^2) + eps), row by row, with a trained gain g (initially 1).
template <class Real>
class RmsNorm : public Module {
 public:
  RmsNorm(std::size_t width, double eps);

  /// x `[tokens, width]` to y of the same shape; `inverse_rms` `[tokens]` is kept for the way back.
  void forward(MatrixView<const Real> x, MatrixView<Real> y, std::vector<Real>& inverse_rms) const;
  /// dx from dy, and the gradient of the gain, token after token. `dx` may be `dy`.
  void backward(MatrixView<const Real> x, const std::vector<Real>& inverse_rms,
                MatrixView<const Real> dy, MatrixView<Real> dx);

  Parameter<Real> gain;

 private:
  /// Of some rows, with scratch of as many.
  void backward_rows(MatrixView<const Real> x, std::span<const Real> inverse_rms,
                     MatrixView<const Real> dy, MatrixView<Real> dx, MatrixView<Real> normed,
                     MatrixView<Real> scaled);

  Real eps_;
};

}  // namespace ballast
