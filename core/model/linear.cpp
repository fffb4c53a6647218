#include "core/model/linear.h"

#include <cmath>

#include "core/arithmetic/products.h"

namespace ballast {

template <class Real>
Linear<Real>::Linear(std::size_t out, std::size_t in) : weight(out, in) {
  weight.initial_deviation = 1.0 / std::sqrt(static_cast<double>(in));
  this->add_parameter("weight", weight);
}

template <class Real>
void Linear<Real>::forward(MatrixView<const Real> x, MatrixView<Real> y,
                           const Executor& executor) const {
  arithmetic::multiply_transposed<Real>(x, weight.value, y, executor);
}

template <class Real>
void Linear<Real>::backward_input(MatrixView<const Real> dy, MatrixView<Real> dx,
                                  const Executor& executor) const {
  arithmetic::multiply<Real>(dy, weight.value, dx, executor);
}

template <class Real>
void Linear<Real>::backward_weight(MatrixView<const Real> x, MatrixView<const Real> dy,
                                   const Executor& executor) {
  arithmetic::accumulate_transposed<Real>(dy, x, weight.gradient, executor);
}

template class Linear<float>;
template class Linear<double>;

}  // namespace ballast
