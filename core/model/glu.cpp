#include "core/model/glu.h"

#include <span>

#include "core/arithmetic/functions.h"
#include "core/model/elementwise.h"

namespace ballast {

namespace {

constexpr double gate_cap = 4.0;
constexpr double up_cap = 25.0;

template <class Real>
void tanh_of_quotient(std::span<Real> values, Real divisor) {
  for (Real& v : values) v /= divisor;
  arithmetic::tanh(std::span<const Real>(values), values);
}

/// The activation's two factors beside the sigmoid, and their slopes, from what the cache holds.
template <class Real>
struct Factors {
  Real gate, up, gate_slope, up_slope;
};

template <Activation activation, class Real>
Factors<Real> factors(Real gate, Real up) {
  if constexpr (activation == Activation::swiglu) {
    return {gate, up, Real{1}, Real{1}};
  } else {
    return {static_cast<Real>(gate_cap) * gate, static_cast<Real>(up_cap) * up,
            Real{1} - gate * gate, Real{1} - up * up};
  }
}

/// h from what the cache holds.
template <Activation activation, class Real>
void combine(std::span<const Real> gate, std::span<const Real> sigmoid, std::span<const Real> up,
             std::span<Real> hidden) {
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    const auto f = factors<activation>(gate[i], up[i]);
    hidden[i] = f.gate * sigmoid[i] * f.up;
  }
}

/// With h = a(g) sigmoid(g) c(u):  dg = dh c (a' sigmoid + a sigmoid (1 - sigmoid)),  du = dh a sigmoid c'.
/// They take the place of what the cache holds of g and u.
template <Activation activation, class Real>
void differentiate(std::span<Real> gate, std::span<const Real> sigmoid, std::span<Real> up,
                   std::span<const Real> dhidden) {
  for (std::size_t i = 0; i < dhidden.size(); ++i) {
    const auto f = factors<activation>(gate[i], up[i]);
    const Real s = sigmoid[i], dh = dhidden[i];
    up[i] = dh * f.gate * s * f.up_slope;
    gate[i] = dh * f.up * s * (f.gate_slope + f.gate * (Real{1} - s));
  }
}

}  // namespace

template <class Real>
Glu<Real>::Glu(std::size_t width, std::size_t inner, Activation activation)
    : gate(inner, width), up(inner, width), down(width, inner), activation_(activation) {
  this->add_module("gate", gate);
  this->add_module("up", up);
  this->add_module("down", down);
}

template <class Real>
void Glu<Real>::forward(MatrixView<const Real> x, GluCache<Real>& cache, std::size_t first,
                        MatrixView<Real> y, const Executor& executor) const {
  const auto g = cache.gate.view().block(first, x.rows());
  const auto s = cache.sigmoid.view().block(first, x.rows());
  const auto u = cache.up.view().block(first, x.rows());
  const auto h = cache.hidden.view().block(first, x.rows());
  gate.forward(x, g, executor);
  up.forward(x, u, executor);
  arithmetic::sigmoid(std::span<const Real>(g.values()), s.values());
  if (activation_ == Activation::situ) {
    tanh_of_quotient(g.values(), static_cast<Real>(gate_cap));
    tanh_of_quotient(u.values(), static_cast<Real>(up_cap));
    combine<Activation::situ, Real>(g.values(), s.values(), u.values(), h.values());
  } else {
    combine<Activation::swiglu, Real>(g.values(), s.values(), u.values(), h.values());
  }
  down.forward(h, y, executor);
}

template <class Real>
void Glu<Real>::backward(MatrixView<const Real> x, GluCache<Real>& cache, std::size_t first,
                         MatrixView<const Real> dy, MatrixView<Real> dx, const Executor& executor) {
  const auto g = cache.gate.view().block(first, x.rows());
  const auto s = cache.sigmoid.view().block(first, x.rows());
  const auto u = cache.up.view().block(first, x.rows());
  const auto h = cache.hidden.view().block(first, x.rows());
  down.backward_weight(h, dy, executor);
  down.backward_input(dy, h, executor);  // dh in place of h
  if (activation_ == Activation::situ) {
    differentiate<Activation::situ, Real>(g.values(), s.values(), u.values(), h.values());
  } else {
    differentiate<Activation::swiglu, Real>(g.values(), s.values(), u.values(), h.values());
  }
  gate.backward_weight(x, g, executor);
  up.backward_weight(x, u, executor);
  gate.backward_input(g, dx, executor);
  Matrix<Real> through_up(dx.rows(), dx.cols());
  up.backward_input(u, through_up, executor);
  add_to<Real>(dx.values(), through_up.values());
}

template class Glu<float>;
template class Glu<double>;

}  // namespace ballast
