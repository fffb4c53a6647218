#include "core/arithmetic/reductions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/arithmetic/functions.h"
#include "core/kernels/kernels.h"

namespace ballast::arithmetic {
namespace {

/// NaNs leave with one set of bits, since which operand's NaN an addition passes on is not defined.
template <class Real>
Real canonical(Real value) {
  return value == value ? value : std::numeric_limits<Real>::quiet_NaN();
}

/// The sum of up to `block_size` terms, in lanes.
template <class Sum, class Real>
Sum block_sum(std::span<const Real> terms) {
  std::array<Sum, sum_lanes> lanes{};
  const std::size_t whole = terms.size() / sum_lanes * sum_lanes;
  for (std::size_t first = 0; first < whole; first += sum_lanes) {
    for (std::size_t l = 0; l < sum_lanes; ++l) lanes[l] += static_cast<Sum>(terms[first + l]);
  }
  for (std::size_t i = whole; i < terms.size(); ++i) lanes[i - whole] += static_cast<Sum>(terms[i]);
  for (std::size_t half = sum_lanes / 2; half > 0; half /= 2) {
    for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

/// The block sums `of_block(first, count)` of `count` terms, added in order.
template <class Sum, class OfBlock>
Sum sum_of_blocks(std::size_t count, OfBlock of_block) {
  if (count == 0) return Sum(0);
  Sum total = of_block(std::size_t{0}, std::min(block_size, count));
  for (std::size_t first = block_size; first < count; first += block_size) {
    total += of_block(first, std::min(block_size, count - first));
  }
  return canonical(total);
}

template <class Sum, class Real>
Sum sum_as(std::span<const Real> values) {
  return sum_of_blocks<Sum>(values.size(), [&](std::size_t first, std::size_t count) {
    return block_sum<Sum>(values.subspan(first, count));
  });
}

template <class Real>
Real dot_of(std::span<const Real> a, std::span<const Real> b) {
  return sum_of_blocks<Real>(a.size(), [&](std::size_t first, std::size_t count) {
    Real chain = 0;
    for (std::size_t i = first; i < first + count; ++i) chain = std::fma(a[i], b[i], chain);
    return chain;
  });
}

/// The largest entry that is not NaN, -inf if there is none.
template <class Real>
Real largest(std::span<const Real> x) {
  std::array<Real, sum_lanes> lanes;
  lanes.fill(-std::numeric_limits<Real>::infinity());
  const std::size_t whole = x.size() / sum_lanes * sum_lanes;
  for (std::size_t first = 0; first < whole; first += sum_lanes) {
    for (std::size_t l = 0; l < sum_lanes; ++l) {
      lanes[l] = x[first + l] > lanes[l] ? x[first + l] : lanes[l];
    }
  }
  for (std::size_t i = whole; i < x.size(); ++i) lanes[0] = x[i] > lanes[0] ? x[i] : lanes[0];
  return *std::max_element(lanes.begin(), lanes.end());
}

template <class Real>
Real log_sum_exp_of(std::span<const Real> x) {
  const Real max = largest(x);
  const Real shift = std::isfinite(max) ? max : Real(0);
  const Real total = sum_of_blocks<Real>(x.size(), [&](std::size_t first, std::size_t count) {
    std::array<Real, block_size> terms;
    for (std::size_t i = 0; i < count; ++i) terms[i] = x[first + i] - shift;
    const std::span<Real> filled(terms.data(), count);
    exp(std::span<const Real>(filled), filled);
    return block_sum<Real>(std::span<const Real>(filled));
  });
  return shift + log(total);
}

template <class Real>
void softmax_of(std::span<const Real> x, std::span<Real> out) {
  const Real max = largest(x);
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = x[i] - max;
  exp(std::span<const Real>(out), out);
  const Real total = sum_as<Real>(std::span<const Real>(out));
  for (Real& value : out) value = canonical(value / total);
}

}  // namespace

float sum(std::span<const float> values) {
  return sum_as<float>(values);
}
double sum(std::span<const double> values) {
  return sum_as<double>(values);
}
double sum_in_double(std::span<const float> values) {
  return sum_as<double>(values);
}

float dot(std::span<const float> a, std::span<const float> b) {
  return dot_of(a, b);
}
double dot(std::span<const double> a, std::span<const double> b) {
  return dot_of(a, b);
}

void dots(std::span<const float* const> a, std::span<const float* const> b, std::size_t length,
          std::span<float> out) {
  kernels::active().reductions.dots(a.data(), b.data(), out.size(), length, out.data());
}
void dots(std::span<const double* const> a, std::span<const double* const> b, std::size_t length,
          std::span<double> out) {
  for (std::size_t r = 0; r < out.size(); ++r)
    out[r] = dot(std::span(a[r], length), std::span(b[r], length));
}

void sums_of_squares(std::span<const float* const> rows, std::size_t length, std::span<double> out) {
  kernels::active().reductions.squares(rows.data(), rows.size(), length, out.data());
}

float log_sum_exp(std::span<const float> x) {
  return log_sum_exp_of(x);
}
double log_sum_exp(std::span<const double> x) {
  return log_sum_exp_of(x);
}

void softmax(std::span<const float> x, std::span<float> out) {
  softmax_of(x, out);
}
void softmax(std::span<const double> x, std::span<double> out) {
  softmax_of(x, out);
}

}  // namespace ballast::arithmetic
