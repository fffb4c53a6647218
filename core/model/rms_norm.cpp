#include "core/model/rms_norm.h"

#include <cmath>

#include "core/arithmetic/reductions.h"

namespace ballast {

template <class Real>
RmsNorm<Real>::RmsNorm(std::size_t width, double eps)
    : gain(1, width, Real{1}), eps_(static_cast<Real>(eps)) {
  this->add_parameter("gain", gain);
}

template <class Real>
void RmsNorm<Real>::forward(MatrixView<const Real> x, MatrixView<Real> y,
                            std::vector<Real>& inverse_rms) const {
  const auto width = static_cast<Real>(x.cols());
  const auto g = gain.value.row(0);
  inverse_rms.resize(x.rows());
  for (std::size_t t = 0; t < x.rows(); ++t) {
    const auto in = x.row(t);
    const auto out = y.row(t);
    const Real r = Real{1} / std::sqrt(arithmetic::dot(in, in) / width + eps_);
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = in[i] * r * g[i];
    inverse_rms[t] = r;
  }
}

// With n = x r and h = g dy:  dx = r (h - n mean(h n)),  dg = sum over tokens of dy n.
template <class Real>
void RmsNorm<Real>::backward(MatrixView<const Real> x, const std::vector<Real>& inverse_rms,
                             MatrixView<const Real> dy, MatrixView<Real> dx) {
  const auto width = static_cast<Real>(x.cols());
  const auto g = gain.value.row(0);
  const auto dg = gain.gradient.row(0);
  std::vector<Real> normed(x.cols()), scaled(x.cols());
  for (std::size_t t = 0; t < x.rows(); ++t) {
    const auto in = x.row(t);
    const auto up = dy.row(t);
    const auto down = dx.row(t);
    const Real r = inverse_rms[t];
    for (std::size_t i = 0; i < in.size(); ++i) {
      normed[i] = in[i] * r;
      scaled[i] = g[i] * up[i];
      dg[i] = std::fma(up[i], normed[i], dg[i]);
    }
    const Real mean = arithmetic::dot(std::span<const Real>(scaled), std::span<const Real>(normed)) / width;
    for (std::size_t i = 0; i < in.size(); ++i) down[i] = r * (scaled[i] - normed[i] * mean);
  }
}

template class RmsNorm<float>;
template class RmsNorm<double>;

}  // namespace ballast
