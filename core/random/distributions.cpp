#include "core/random/distributions.h"

#include <algorithm>
#include <array>
#include <boost/random/uniform_int_distribution.hpp>
#include <cmath>
#include <stdexcept>
#include <string>

#include "core/arithmetic/functions.h"
#include "core/arithmetic/reductions.h"

namespace ballast {
namespace {

/// (n_0 + n_1 x + ...) / (1 + d_1 x + ...).
struct Rational {
  std::array<double, 8> numerator;
  std::array<double, 8> denominator;

  double operator()(double x) const { return horner(numerator, x) / horner(denominator, x); }
  static double horner(const std::array<double, 8>& coefficients, double x) {
    double value = coefficients[7];
    for (std::size_t i = 7; i-- > 0;) value = std::fma(value, x, coefficients[i]);
    return value;
  }
};

// Wichura, "Algorithm AS 241: The percentage points of the normal distribution", Applied Statistics
// 37 (1988), routine PPND16.
constexpr Rational central = {
    {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
     1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
     3.3430575583588128105e4, 2.5090809287301226727e3},
    {1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
     5.2264952788528545610e3}};
constexpr Rational tail = {
    {1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
     3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
     2.27238449892691845833e-2, 7.74545014278341407640e-4},
    {1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
     1.05075007164441684324e-9}};
constexpr Rational far_tail = {
    {6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
     2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
     2.71155556874348757815e-5, 2.01033439929228813265e-7},
    {1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
     2.04426310338993978564e-15}};

[[noreturn]] void refuse_weights(const std::string& why) {
  throw std::invalid_argument("Categorical: weights must be finite and >= 0, at least one > 0; " +
                              why);
}

void check_weights(std::span<const double> weights) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!std::isfinite(weights[i]) || weights[i] < 0) {
      refuse_weights("weight " + std::to_string(i) + " is " + std::to_string(weights[i]));
    }
  }
  if (std::none_of(weights.begin(), weights.end(), [](double w) { return w > 0; })) {
    refuse_weights("none of the " + std::to_string(weights.size()) + " is > 0");
  }
}

/// The weights times a factor that makes their mean 1.
std::vector<double> scaled_to_mean_one(std::span<const double> weights) {
  const double largest = *std::max_element(weights.begin(), weights.end());
  std::vector<double> scaled(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) scaled[i] = weights[i] / largest;
  const double factor =
      static_cast<double>(weights.size()) / arithmetic::sum(std::span<const double>(scaled));
  for (double& weight : scaled) weight *= factor;
  return scaled;
}

}  // namespace

double uniform(Stream& stream) {
  return static_cast<double>(stream() >> 11) * 0x1p-53;
}

std::uint64_t uniform_index(Stream& stream, std::uint64_t bound) {
  return boost::random::uniform_int_distribution<std::uint64_t>(0, bound - 1)(stream);
}

double normal_quantile(double p) {
  constexpr double central_half_width = 0.425;
  constexpr double tail_end = 5.0;
  const double q = p - 0.5;
  if (std::abs(q) <= central_half_width) {
    return q * central(central_half_width * central_half_width - q * q);
  }
  const double r = std::sqrt(-arithmetic::log(q < 0 ? p : 1 - p));
  const double size = r <= tail_end ? tail(r - 1.6) : far_tail(r - tail_end);
  return std::copysign(size, q);
}

double normal(Stream& stream) {
  // (i + 1/2) / 2^52 is never 0 or 1, is symmetric about 1/2, and is exact.
  return normal_quantile((static_cast<double>(stream() >> 12) + 0.5) * 0x1p-52);
}

double log_normal(Stream& stream, double sigma) {
  return arithmetic::exp(sigma * normal(stream));
}

std::vector<double> zipf_shares(std::size_t count, double exponent) {
  std::vector<double> shares(count);
  for (std::size_t i = 0; i < count; ++i) {
    shares[i] = arithmetic::exp(-exponent * arithmetic::log(static_cast<double>(i + 1)));
  }
  const double total = arithmetic::sum(std::span<const double>(shares));
  for (double& share : shares) share /= total;
  return shares;
}

Categorical::Categorical(std::span<const double> weights) {
  check_weights(weights);
  std::vector<double> left = scaled_to_mean_one(weights);
  std::vector<std::size_t> small, large;
  for (std::size_t i = left.size(); i-- > 0;) (left[i] < 1 ? small : large).push_back(i);

  // What is left over by rounding has nearly its whole cell, except an index of weight 0, which has
  // none of it.
  const auto heaviest = std::max_element(weights.begin(), weights.end()) - weights.begin();
  alias_.assign(left.size(), static_cast<std::size_t>(heaviest));
  threshold_.resize(left.size());
  for (std::size_t i = 0; i < left.size(); ++i) threshold_[i] = weights[i] > 0 ? 1.0 : 0.0;

  while (!small.empty() && !large.empty()) {
    const std::size_t i = small.back();
    const std::size_t donor = large.back();
    small.pop_back();
    threshold_[i] = left[i];
    alias_[i] = donor;
    left[donor] = (left[donor] + left[i]) - 1;
    if (left[donor] < 1) {
      large.pop_back();
      small.push_back(donor);
    }
  }
}

std::size_t Categorical::operator()(Stream& stream) const {
  // For sizes below 2^53 the product never rounds up to the size.
  const auto cell = static_cast<std::size_t>(uniform(stream) * static_cast<double>(size()));
  return uniform(stream) < threshold_[cell] ? cell : alias_[cell];
}

}  // namespace ballast
