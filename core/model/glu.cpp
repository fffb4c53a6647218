#include "core/model/glu.h"

#include <span>

#include "core/arithmetic/functions.h"

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

template <class Real>
Factors<Real> factors(Activation activation, Real gate, Real up) {
  if (activation == Activation::swiglu) return {gate, up, Real{1}, Real{1}};
  return {static_cast<Real>(gate_cap) * gate, static_cast<Real>(up_cap) * up, Real{1} - gate * gate,
          Real{1} - up * up};
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
  }
  for (std::size_t i = 0; i < h.values().size(); ++i) {
    const auto f = factors(activation_, g.values()[i], u.values()[i]);
    h.values()[i] = f.gate * s.values()[i] * f.up;
  }
  down.forward(h, y, executor);
}

// With h = a(g) sigmoid(g) c(u):  dg = dh c (a' sigmoid + a sigmoid (1 - sigmoid)),  du = dh a sigmoid c'.
template <class Real>
void Glu<Real>::backward(MatrixView<const Real> x, const GluCache<Real>& cache, std::size_t first,
                         MatrixView<const Real> dy, MatrixView<Real> dx, const Executor& executor) {
  const auto g = cache.gate.view().block(first, x.rows());
  const auto s = cache.sigmoid.view().block(first, x.rows());
  const auto u = cache.up.view().block(first, x.rows());
  const auto h = cache.hidden.view().block(first, x.rows());
  Matrix<Real> dg(h.rows(), h.cols()), du(h.rows(), h.cols());
  down.backward_weight(h, dy, executor);
  down.backward_input(dy, dg, executor);  // dh, turned into dg in place
  for (std::size_t i = 0; i < h.values().size(); ++i) {
    const auto f = factors(activation_, g.values()[i], u.values()[i]);
    const Real sigmoid = s.values()[i];
    const Real dh = dg.values()[i];
    du.values()[i] = dh * f.gate * sigmoid * f.up_slope;
    dg.values()[i] = dh * f.up * sigmoid * (f.gate_slope + f.gate * (Real{1} - sigmoid));
  }
  gate.backward_weight(x, dg, executor);
  up.backward_weight(x, du, executor);
  gate.backward_input(dg, dx, executor);
  Matrix<Real> through_up(dx.rows(), dx.cols());
  up.backward_input(du, through_up, executor);
  for (std::size_t i = 0; i < dx.values().size(); ++i) dx.values()[i] += through_up.values()[i];
}

template class Glu<float>;
template class Glu<double>;

}  // namespace ballast
