#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "core/arithmetic/functions.h"
#include "core/arithmetic/reductions.h"
#include "core/balancers/histogram.h"
#include "core/kernels/kernels.h"
#include "core/model/selection.h"

namespace ballast::kernels {

namespace scalar {  // scalar_random_fills.cpp
void fill_uniform(const RandomFill& fill);
void fill_normal(const RandomFill& fill, const NormalTable& table);
void fill_log_normal(const RandomFill& fill, const NormalTable& table, float sigma);
void fill_gumbel(const RandomFill& fill);
}  // namespace scalar

namespace {

template <float (*function)(float)>
void map(const float* in, float* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = function(in[i]);
}

/// NaNs leave with one set of bits, as those of the vector versions do.
template <class Real>
Real canonical(Real value) {
  return std::isnan(value) ? std::numeric_limits<Real>::quiet_NaN() : value;
}

void dots(const float* const* a, const float* const* b, std::size_t count, std::size_t length,
          float* out) {
  for (std::size_t r = 0; r < count; ++r)
    out[r] = arithmetic::dot(std::span(a[r], length), std::span(b[r], length));
}

void squares(const float* const* rows, std::size_t count, std::size_t length, double* out) {
  for (std::size_t r = 0; r < count; ++r) {
    double sum = 0.0;
    for (const float x : std::span(rows[r], length)) sum += double{x} * double{x};
    out[r] = canonical(sum);
  }
}

void adamw(const AdamWFactors& f, const AdamWValues& values) {
  for (std::size_t i = 0; i < values.count; ++i) {
    float &p = values.p[i], &m = values.m[i], &v = values.v[i];
    const float g = values.gradient[i] / f.scale;
    m = canonical(f.beta1 * m + f.keep1 * g);
    v = canonical(f.beta2 * v + f.keep2 * (g * g));
    const float direction = (m * f.correct1) / (std::sqrt(v * f.correct2) + f.eps);
    p = canonical(p - f.rate * (direction + f.decay * p));
  }
}

/// Small enough to vanish in any sum that is not nearly zero itself; in K3's code.
constexpr float denominator_guard = 1e-20f;

void weigh(const RouteRows& rows, std::size_t t) {
  const float* const gates = rows.gates + t * rows.gates_stride;
  const std::span chosen(rows.indices + t * rows.top_k, rows.top_k);
  const std::span weights(rows.weights + t * rows.top_k, rows.top_k);
  float sum = 0.0f;
  for (std::size_t slot = 0; slot < chosen.size(); ++slot) {
    weights[slot] = gates[chosen[slot]];
    sum += weights[slot];
  }
  if (rows.renormalize) {
    if (rows.weight_sums != nullptr) rows.weight_sums[t] = sum;
    for (float& weight : weights) weight /= sum + denominator_guard;
  }
  for (float& weight : weights) weight *= rows.scale;
}

/// Rows [first, first + count), which lie one behind the other.
void select(const RouteRows& rows, std::size_t first, std::size_t count) {
  const MatrixView<const float> scores(rows.scores + first * rows.scores_stride, count,
                                       rows.experts);
  const auto selection =
      select_by_insertion<float>(scores, {rows.biases, rows.experts}, rows.top_k);
  std::ranges::copy(selection.indices.values(), rows.indices + first * rows.top_k);
  if (rows.cutoffs != nullptr) std::ranges::copy(selection.cutoffs, rows.cutoffs + first);
}

void route(const RouteRows& rows) {
  for (std::size_t t = 0; t < rows.tokens; ++t) {
    const std::span scores(rows.scores + t * rows.scores_stride, rows.experts);
    if (rows.logits != nullptr)
      map<arithmetic::sigmoid>(rows.logits + t * rows.logits_stride, scores.data(), scores.size());
    rows.finite[t] = std::ranges::all_of(scores, [](float s) { return std::isfinite(s); });
  }
  if (rows.scores_stride == rows.experts) {
    select(rows, 0, rows.tokens);
  } else {
    for (std::size_t t = 0; t < rows.tokens; ++t) select(rows, t, 1);
  }
  for (std::size_t t = 0; t < rows.tokens && rows.weights != nullptr; ++t) weigh(rows, t);
}

void count_few(const std::int32_t* indices, std::size_t count, std::int64_t* counts,
               std::size_t experts) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto j = static_cast<std::size_t>(indices[i]);
    if (j < experts) ++counts[j];
  }
}

/// Given, or as the sigmoid of what is.
float score(const ScoreTile& tile, std::size_t t, std::size_t j) {
  return tile.logits != nullptr ? arithmetic::sigmoid(tile.logits[t * tile.logits_stride + j])
                                : tile.row(t)[j];
}

void count_bins(CountBins& rows) {
  for (std::size_t t = 0; t < rows.tile.tokens; ++t) {
    if (!rows.tile.observes(t)) continue;
    for (std::size_t j = 0; j < rows.tile.experts; ++j) {
      const float s = score(rows.tile, t, j);
      const float r = rows.tile.cutoffs != nullptr ? rows.tile.cutoffs[t] - s : s;
      ++rows.counts[j * rows.counts_stride + histogram_bin(r, rows.low, rows.width, rows.bins)];
      rows.below += r < rows.low ? 1 : 0;
      rows.above += r > rows.high ? 1 : 0;
    }
  }
}

void collect_inside(const CollectInside& rows) {
  for (std::size_t t = 0; t < rows.tile.tokens; ++t) {
    if (!rows.tile.observes(t)) continue;
    for (std::size_t j = 0; j < rows.tile.experts; ++j) {
      const float r = (rows.tile.cutoffs[t] - score(rows.tile, t, j)) + 0.0f;  // no -0
      if (r < rows.low[j]) {
        ++rows.below[j];
      } else if (r <= rows.high[j]) {
        *rows.ends[j]++ = r;
      }
    }
  }
}

float order_statistic(float* values, float*, std::size_t count, std::size_t position) {
  std::nth_element(values, values + position, values + count);
  return values[position];
}

/// Some columns of a block of the sum.
template <class Real>
class ProductPanel {
 public:
  static constexpr std::size_t cols_max = 64;

  /// Rows [p, p + depth) and columns [j, j + cols) of b, copied so that a row lies together.
  ProductPanel(const Product<Real>& product, std::size_t p, std::size_t j)
      : product_(product),
        p_(p),
        j_(j),
        depth_(std::min(product_block, product.depth - p)),
        cols_(std::min(cols_max, product.cols - j)) {
    for (std::size_t c = 0; c < cols_; ++c) {
      for (std::size_t q = 0; q < depth_; ++q) b_[q][c] = *product.b.at(p + q, j + c);
    }
  }

  /// Entries side by side, which changes none of them.
  void multiply(std::size_t i) const {
    Real* const out = product_.out + i * product_.out_stride + j_;
    Real chains[cols_max];
    for (std::size_t c = 0; c < cols_; ++c) chains[c] = product_.accumulate ? out[c] : Real(0);
    for (std::size_t q = 0; q < depth_; ++q) {
      const Real factor = *product_.a.at(i, p_ + q);
      for (std::size_t c = 0; c < cols_; ++c) chains[c] = std::fma(factor, b_[q][c], chains[c]);
    }
    for (std::size_t c = 0; c < cols_; ++c) {
      const Real sum = product_.accumulate || p_ == 0 ? chains[c] : out[c] + chains[c];
      out[c] = canonical(sum);
    }
  }

 private:
  const Product<Real>& product_;
  std::size_t p_, j_, depth_, cols_;
  Real b_[product_block][cols_max];
};

template <class Real>
void multiply(const Product<Real>& product) {
  for (std::size_t p = 0; p < product.depth; p += product_block) {
    for (std::size_t j = 0; j < product.cols; j += ProductPanel<Real>::cols_max) {
      const ProductPanel<Real> panel(product, p, j);
      for (std::size_t i = 0; i < product.rows; ++i) panel.multiply(i);
    }
  }
}

}  // namespace

extern const Kernels scalar_kernels = {
    Target::scalar,
    map<arithmetic::sigmoid>,
    route,
    count_few,
    count_bins,
    collect_inside,
    order_statistic,
    {scalar::fill_uniform, scalar::fill_normal, scalar::fill_log_normal, scalar::fill_gumbel},
    {map<arithmetic::exp>, map<arithmetic::tanh>},
    {dots, squares},
    adamw,
    multiply<float>,
    multiply<double>};

}  // namespace ballast::kernels
