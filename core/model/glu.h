#pragma once

#include <cstddef>

#include "core/executor.h"
#include "core/model/linear.h"
#include "core/model/settings.h"

namespace ballast {

/// What a GLU's way back needs of its way forth, a row a token, `[tokens, inner]` each.
template <class Real>
struct GluCache {
  GluCache() = default;
  GluCache(std::size_t tokens, std::size_t inner)
      : gate(tokens, inner), sigmoid(tokens, inner), up(tokens, inner), hidden(tokens, inner) {}
  void reshape(std::size_t tokens, std::size_t inner) {
    for (Matrix<Real>* const part : {&gate, &sigmoid, &up, &hidden}) part->reshape(tokens, inner);
  }

  Matrix<Real> gate;     ///< situ: tanh(g / 4); swiglu: g
  Matrix<Real> sigmoid;  ///< sigmoid(g), of the un-capped gate
  Matrix<Real> up;       ///< situ: tanh(u / 25); swiglu: u
  Matrix<Real> hidden;   ///< h
};

/// A gated MLP, one expert:  g = W_g x,  u = W_u x,  h = cap_4(g) sigmoid(g) cap_25(u),  y = W_d h,
/// cap_B(v) = B tanh(v / B)  (Kimi K3 report Eq. 12, 18, 19: SiTU-GLU). |h| <= 100 in every coordinate, with
/// equality once tanh rounds to 1, where the gradient of that branch is exactly 0. swiglu leaves the caps out.
template <class Real>
class Glu : public Module {
 public:
  Glu(std::size_t width, std::size_t inner, Activation activation);

  /// x `[tokens, width]` to y `[tokens, width]`; fills rows [first, first + tokens) of the cache.
  void forward(MatrixView<const Real> x, GluCache<Real>& cache, std::size_t first, MatrixView<Real> y,
               const Executor& executor) const;
  /// From dy: adds the gradients of the weights, writes dx. Uses up these rows of the cache: gradients take their place.
  void backward(MatrixView<const Real> x, GluCache<Real>& cache, std::size_t first,
                MatrixView<const Real> dy, MatrixView<Real> dx, const Executor& executor);

  Linear<Real> gate;  ///< W_g (w1 in K3's checkpoint)
  Linear<Real> up;    ///< W_u (w3)
  Linear<Real> down;  ///< W_d (w2)

 private:
  Activation activation_;
};

}  // namespace ballast
