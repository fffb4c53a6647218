#include "core/arithmetic/functions.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/arithmetic/formats.h"
#include "core/kernels/kernels.h"

namespace ballast::arithmetic {
namespace {

template <class Real>
using Bits = typename Format<Real>::Bits;

template <class Real>
constexpr Real quiet_nan = std::numeric_limits<Real>::quiet_NaN();

/// Horner's rule, from coefficient `i` on. The recursion leaves no loop that would keep callers
/// from being vectorised.
template <std::size_t i = 0, class Real, std::size_t n>
inline Real polynomial(const std::array<Real, n>& coefficients, Real x) {
  if constexpr (i + 1 == n) {
    return coefficients[i];
  } else {
    return std::fma(polynomial<i + 1>(coefficients, x), x, coefficients[i]);
  }
}

/// 2^n for an n inside the range of normal numbers. Adding 1.5 * 2^mantissa_bits leaves n in the
/// low bits.
template <class Real>
inline Real power_of_two(Bits<Real> n) {
  return std::bit_cast<Real>((n + Format<Real>::exponent_bias) << Format<Real>::mantissa_bits);
}

/// e^x - 1 = 2^n (m + 1) - 1 with m = e^r - 1 and |r| <= log(2) / 2. The power is in two factors,
/// since 2^n may overflow or underflow where e^x does not.
template <class Real>
struct Reduced {
  Real m;
  Real scale_1;
  Real scale_2;
};

template <class Real>
inline Reduced<Real> reduce(Real x) {
  using F = Format<Real>;
  // Adding and taking away 1.5 * 2^mantissa_bits rounds to an integer, and leaves it in the low
  // bits.
  constexpr Real round = Real(3) * static_cast<Real>(Bits<Real>{1} << (F::mantissa_bits - 1));
  const Real shifted = std::fma(x, F::log2_e, round);
  const Real n = shifted - round;
  const Real shifted_half = std::fma(n, Real(0.5), round);
  const auto n_bits = std::bit_cast<Bits<Real>>(shifted);
  const auto half_bits = std::bit_cast<Bits<Real>>(shifted_half);
  const Real r = std::fma(-n, F::log_2_low, std::fma(-n, F::log_2_high, x));
  const Real m = std::fma(r * r, polynomial(F::expm1, r), r);
  return {m, power_of_two<Real>(half_bits), power_of_two<Real>(n_bits - half_bits)};
}

/// `condition ? a : b` without a branch to compute things behind, which would keep loops from being
/// vectorised.
template <class Real>
inline Real select(bool condition, Real a, Real b) {
  const Bits<Real> mask = Bits<Real>{0} - static_cast<Bits<Real>>(condition);
  return std::bit_cast<Real>((std::bit_cast<Bits<Real>>(a) & mask) |
                             (std::bit_cast<Bits<Real>>(b) & ~mask));
}

template <class Real>
struct Exp {
  static inline Real of(Real x) {
    using F = Format<Real>;
    const Real not_above = x > F::exp_overflow ? F::exp_overflow : x;
    const auto reduced = reduce(not_above < F::exp_underflow ? F::exp_underflow : not_above);
    const Real value = (Real(1) + reduced.m) * reduced.scale_1 * reduced.scale_2;
    return select(x != x, quiet_nan<Real>, value);
  }
};

/// min(|x|, limit).
template <class Real>
inline Real size_up_to(Real limit, Real x) {
  return select(std::abs(x) > limit, limit, std::abs(x));
}

/// (n + n_low) / (d + d_low), where the low parts are of the size of rounding errors.
template <class Real>
inline Real quotient(Real n, Real n_low, Real d, Real d_low) {
  const Real inverse = Real(1) / d;
  const Real first = n * inverse;
  const Real rest = std::fma(-first, d, n) + std::fma(-first, d_low, n_low);
  return std::fma(rest, inverse, first);
}

/// With e = e^-|x|, which cannot overflow: 1 / (1 + e) on the right and e / (1 + e) on the left.
/// The rounding errors of e and of 1 + e are carried along; without them neighbours could be out of
/// order.
template <class Real>
struct Sigmoid {
  static inline Real of(Real x) {
    const auto reduced = reduce(-size_up_to(-Format<Real>::exp_underflow, x));
    const Real p = Real(1) + reduced.m;
    const Real p_low = reduced.m - (p - Real(1));
    const Real e = p * reduced.scale_1 * reduced.scale_2;
    const Real e_low = p_low * reduced.scale_1 * reduced.scale_2;
    const Real d = Real(1) + e;
    const Real d_low = (e - (d - Real(1))) + e_low;
    const bool left = x < Real(0);
    const Real value = quotient(select(left, e, Real(1)), select(left, e_low, Real(0)), d, d_low);
    return select(x != x, quiet_nan<Real>, value);
  }
};

/// With t = e^(-2 |x|) - 1: tanh |x| = -t / (2 + t), which loses nothing as t -> 0 and t -> -1. The
/// rounding errors of t and of 2 + t are carried along.
template <class Real>
struct Tanh {
  static inline Real of(Real x) {
    const auto reduced = reduce(Real(-2) * size_up_to(Format<Real>::tanh_saturation, x));
    const Real scale = reduced.scale_1 * reduced.scale_2;
    const Real base = scale - Real(1);
    const Real t = std::fma(scale, reduced.m, base);
    const Real t_low = std::fma(scale, reduced.m, base - t) + (scale - (base + Real(1)));
    const Real d = Real(2) + t;
    const Real d_low = (t - (d - Real(2))) + t_low;
    const Real value = std::copysign(quotient(-t, -t_low, d, d_low), x);
    return select(x != x, quiet_nan<Real>, value);
  }
};

/// x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), and with s = f / (2 + f):
/// log(1 + f) = 2 atanh(s) = f - (f^2 / 2 - s (f^2 / 2 + s^2 (2/3 + ...))).
template <class Real>
inline Real log_of_positive(Real x) {
  using F = Format<Real>;
  constexpr Bits<Real> one = F::exponent_bias << F::mantissa_bits;
  constexpr Bits<Real> below_sqrt_half = std::bit_cast<Bits<Real>>(Real(0.70710678118654752440));
  constexpr Bits<Real> mantissa = (Bits<Real>{1} << F::mantissa_bits) - 1;
  constexpr int bias = static_cast<int>(F::exponent_bias);

  const bool subnormal = x < std::numeric_limits<Real>::min();
  x *= select(subnormal, static_cast<Real>(Bits<Real>{1} << F::mantissa_bits), Real(1));
  const Bits<Real> bits = std::bit_cast<Bits<Real>>(x) + (one - below_sqrt_half);
  const int exponent = static_cast<int>(bits >> F::mantissa_bits) - bias;
  const Real k = static_cast<Real>(exponent) - select(subnormal, Real(F::mantissa_bits), Real(0));
  const Real f = std::bit_cast<Real>((bits & mantissa) + below_sqrt_half) - Real(1);

  const Real s = f / (Real(2) + f);
  const Real z = s * s;
  const Real half_square = Real(0.5) * f * f;
  const Real tail =
      std::fma(s, std::fma(z, polynomial(F::log1p, z), half_square), k * F::log_2_rest);
  return std::fma(k, F::log_2_short, f - (half_square - tail));
}

template <class Real>
struct Log {
  static inline Real of(Real x) {
    const Real of_positive = log_of_positive(x);
    const Real of_zero = select(x == Real(0), -std::numeric_limits<Real>::infinity(), of_positive);
    const Real of_finite = select(x == std::numeric_limits<Real>::infinity(), x, of_zero);
    return select(x >= Real(0), of_finite, quiet_nan<Real>);
  }
};

/// Blocks of fixed size in storage of their own let the compiler use vectors, whatever aliases; the
/// last, partial block is computed whole as well.
template <template <class> class Function, class Real>
void map(std::span<const Real> in, std::span<Real> out) {
  constexpr std::size_t block_size = 128 / sizeof(Real);
  std::array<Real, block_size> block{};
  for (std::size_t first = 0; first < in.size(); first += block_size) {
    const std::size_t count = std::min(block_size, in.size() - first);
    std::copy_n(in.data() + first, count, block.data());
    for (Real& value : block) value = Function<Real>::of(value);
    std::copy_n(block.data(), count, out.data() + first);
  }
}

}  // namespace

float exp(float x) {
  return Exp<float>::of(x);
}
double exp(double x) {
  return Exp<double>::of(x);
}
float log(float x) {
  return Log<float>::of(x);
}
double log(double x) {
  return Log<double>::of(x);
}
float sigmoid(float x) {
  return Sigmoid<float>::of(x);
}
double sigmoid(double x) {
  return Sigmoid<double>::of(x);
}
float tanh(float x) {
  return Tanh<float>::of(x);
}
double tanh(double x) {
  return Tanh<double>::of(x);
}

void exp(std::span<const float> in, std::span<float> out) {
  kernels::active().functions.exp(in.data(), out.data(), in.size());
}
void exp(std::span<const double> in, std::span<double> out) {
  map<Exp>(in, out);
}
void log(std::span<const float> in, std::span<float> out) {
  map<Log>(in, out);
}
void log(std::span<const double> in, std::span<double> out) {
  map<Log>(in, out);
}
void sigmoid(std::span<const float> in, std::span<float> out) {
  kernels::active().sigmoid(in.data(), out.data(), in.size());
}
void sigmoid(std::span<const double> in, std::span<double> out) {
  map<Sigmoid>(in, out);
}
void tanh(std::span<const float> in, std::span<float> out) {
  kernels::active().functions.tanh(in.data(), out.data(), in.size());
}
void tanh(std::span<const double> in, std::span<double> out) {
  map<Tanh>(in, out);
}

}  // namespace ballast::arithmetic
