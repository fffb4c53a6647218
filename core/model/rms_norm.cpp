#include "core/model/rms_norm.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/arithmetic/reductions.h"

namespace ballast {

namespace {

template <class Real>
std::vector<const Real*> starts_of_rows(MatrixView<const Real> x) {
  std::vector<const Real*> starts(x.rows());
  for (std::size_t t = 0; t < x.rows(); ++t) starts[t] = x.row(t).data();
  return starts;
}

}  // namespace

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
  const auto rows = starts_of_rows(x);
  inverse_rms.resize(x.rows());
  arithmetic::dots(rows, rows, x.cols(), std::span<Real>(inverse_rms));
  for (std::size_t t = 0; t < x.rows(); ++t) {
    const auto in = x.row(t);
    const auto out = y.row(t);
    const Real r = Real{1} / std::sqrt(inverse_rms[t] / width + eps_);
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = in[i] * r * g[i];
    inverse_rms[t] = r;
  }
}

// With n = x r and h = g dy:  dx = r (h - n mean(h n)),  dg = sum over tokens of dy n.
template <class Real>
void RmsNorm<Real>::backward(MatrixView<const Real> x, const std::vector<Real>& inverse_rms,
                             MatrixView<const Real> dy, MatrixView<Real> dx) {
  constexpr std::size_t at_once = 16;
  Matrix<Real> normed(at_once, x.cols()), scaled(at_once, x.cols());
  for (std::size_t first = 0; first < x.rows(); first += at_once) {
    const std::size_t count = std::min(at_once, x.rows() - first);
    backward_rows(x.block(first, count), std::span(inverse_rms).subspan(first, count),
                  dy.block(first, count), dx.block(first, count), normed, scaled);
  }
}

template <class Real>
void RmsNorm<Real>::backward_rows(MatrixView<const Real> x, std::span<const Real> inverse_rms,
                                  MatrixView<const Real> dy, MatrixView<Real> dx,
                                  MatrixView<Real> normed, MatrixView<Real> scaled) {
  const auto width = static_cast<Real>(x.cols());
  const auto g = gain.value.row(0);
  const auto dg = gain.gradient.row(0);
  for (std::size_t t = 0; t < x.rows(); ++t) {
    const auto in = x.row(t), up = dy.row(t);
    const auto n = normed.row(t), h = scaled.row(t);
    const Real r = inverse_rms[t];
    for (std::size_t i = 0; i < in.size(); ++i) {
      n[i] = in[i] * r;
      h[i] = g[i] * up[i];
    }
    for (std::size_t i = 0; i < in.size(); ++i) dg[i] = std::fma(up[i], n[i], dg[i]);
  }
  std::vector<Real> products(x.rows());
  arithmetic::dots(starts_of_rows<Real>(scaled.block(0, x.rows())),
                   starts_of_rows<Real>(normed.block(0, x.rows())), x.cols(),
                   std::span<Real>(products));
  for (std::size_t t = 0; t < x.rows(); ++t) {
    const auto n = normed.row(t), h = scaled.row(t), out = dx.row(t);
    const Real r = inverse_rms[t], mean = products[t] / width;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = r * (h[i] - n[i] * mean);
  }
}

template class RmsNorm<float>;
template class RmsNorm<double>;

}  // namespace ballast
