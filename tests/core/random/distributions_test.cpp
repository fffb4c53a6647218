#include "core/random/distributions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace ballast {
namespace {

constexpr std::size_t count = 100'000;

/// Samples of a fixed stream, so every test here always sees the same ones.
template <class Draw>
std::vector<double> samples(Draw draw, std::uint64_t seed = 20260801) {
  Stream stream(seed);
  std::vector<double> values(count);
  for (double& value : values) value = static_cast<double>(draw(stream));
  return values;
}

double mean_of_power(const std::vector<double>& values, int power) {
  double total = 0;
  for (const double value : values) total += std::pow(value, power);
  return total / static_cast<double>(values.size());
}

double normal_distribution(double z) {
  return std::erfc(-z / std::sqrt(2.0)) / 2;
}

/// Kolmogorov and Smirnov's largest distance from the distribution function, times sqrt(count):
/// above 1.95 with probability 0.001.
template <class Distribution>
double kolmogorov_smirnov(std::vector<double> values, Distribution distribution) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double distance = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double expected = distribution(values[i]);
    distance = std::max({distance, expected - static_cast<double>(i) / n,
                         static_cast<double>(i + 1) / n - expected});
  }
  return distance * std::sqrt(n);
}

/// Pearson's chi^2 of the counts of the indices, in standard deviations above its mean.
double chi_square_deviations(const std::vector<double>& indices,
                             const std::vector<double>& shares) {
  std::vector<double> counts(shares.size());
  for (const double index : indices) ++counts.at(static_cast<std::size_t>(index));
  double chi_square = 0, freedom = -1;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const double expected = shares[i] * static_cast<double>(indices.size());
    if (expected == 0) {
      EXPECT_EQ(counts[i], 0) << "index " << i << " has no weight";
      continue;
    }
    chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
    ++freedom;
  }
  return (chi_square - freedom) / std::sqrt(2 * freedom);
}

std::vector<double> shares_of(std::vector<double> weights) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= total;
  return weights;
}

TEST(Uniform, HasItsDistribution) {
  const auto values = samples(uniform);
  EXPECT_LT(kolmogorov_smirnov(values, [](double x) { return x; }), 1.95);
  for (const double value : values) {
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    ASSERT_EQ(value * 0x1p53, std::floor(value * 0x1p53));
  }
}

TEST(UniformIndex, IsUniformBelowItsBound) {
  for (const std::size_t bound : {1u, 2u, 7u, 64u, 1000u}) {
    const auto values = samples([&](Stream& stream) { return uniform_index(stream, bound); });
    const std::vector<double> shares(bound, 1.0 / static_cast<double>(bound));
    if (bound > 1) {
      EXPECT_LT(std::abs(chi_square_deviations(values, shares)), 4) << bound;
    }
    EXPECT_LT(*std::max_element(values.begin(), values.end()), bound);
  }
}

/// With a bound of 2/3 of the range, taking a remainder would make the lower half twice as likely.
TEST(UniformIndex, HasNoBiasForHugeBounds) {
  constexpr std::uint64_t bound = 0xAAAAAAAAAAAAAAAB;
  const auto below_half =
      samples([](Stream& stream) { return uniform_index(stream, bound) < bound / 2; });
  EXPECT_NEAR(mean_of_power(below_half, 1), 0.5, 5 * 0.5 / std::sqrt(count));
}

TEST(NormalQuantile, InvertsTheDistributionFunction) {
  for (double p = 0x1p-53; p < 0.5; p *= 1.03) {
    const double z = normal_quantile(p);
    const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::acos(-1.0));
    // One relative error of p moves z by p / density.
    EXPECT_NEAR(normal_distribution(z) / density, p / density, 2e-15 * (1 + std::abs(z))) << p;
  }
  EXPECT_EQ(normal_quantile(0.5), 0.0);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-15);
  EXPECT_NEAR(normal_quantile(1e-300), -37.04709629936120, 1e-13);
  for (double p = 0x1p-20; p < 1; p += 0x1p-8)
    EXPECT_EQ(normal_quantile(1 - p), -normal_quantile(p)) << p;
}

TEST(NormalQuantile, IsNaNOutsideOfItsRange) {
  for (const double p : {-1.0, 0.0, 1.0, 2.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_TRUE(std::isnan(normal_quantile(p))) << p;
  }
}

TEST(Normal, HasItsDistributionAndMoments) {
  const auto values = samples(normal);
  EXPECT_LT(kolmogorov_smirnov(values, normal_distribution), 1.95);
  const double root = std::sqrt(count);  // deviations: 1, sqrt(2), sqrt(15), sqrt(96) over the root
  EXPECT_NEAR(mean_of_power(values, 1), 0, 4 / root);
  EXPECT_NEAR(mean_of_power(values, 2), 1, 4 * 1.42 / root);
  EXPECT_NEAR(mean_of_power(values, 3), 0, 4 * 3.88 / root);
  EXPECT_NEAR(mean_of_power(values, 4), 3, 4 * 9.80 / root);
}

TEST(LogNormal, HasItsDistribution) {
  constexpr double sigma = 1.5;
  const auto values = samples([](Stream& stream) { return log_normal(stream, sigma); });
  EXPECT_LT(
      kolmogorov_smirnov(values, [](double x) { return normal_distribution(std::log(x) / sigma); }),
      1.95);
  Stream stream(1);
  EXPECT_EQ(log_normal(stream, 0), 1.0);
  EXPECT_EQ(stream.position(), 1u);
}

TEST(ZipfShares, FallAsAPowerOfTheRankAndSumToOne) {
  for (const double exponent : {0.0, 0.5, 1.0, 1.7}) {
    const auto shares = zipf_shares(1000, exponent);
    EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 1, 1e-13);
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const double expected = shares[0] * std::pow(static_cast<double>(i + 1), -exponent);
      ASSERT_NEAR(shares[i], expected, 1e-14 * expected) << exponent << " " << i;
    }
  }
  EXPECT_EQ(zipf_shares(1, 2), std::vector<double>{1.0});
  EXPECT_TRUE(zipf_shares(0, 1).empty());
}

TEST(Categorical, DrawsEveryIndexByItsWeight) {
  const std::vector<std::vector<double>> cases = {{1, 2, 3, 4},
                                                  {0, 1, 0, 5, 0},
                                                  {1e-300, 2e-300},
                                                  {1e308, 1e308, 1e308},
                                                  std::vector<double>(300, 0.1)};
  for (const auto& weights : cases) {
    const Categorical categorical(weights);
    EXPECT_EQ(categorical.size(), weights.size());
    // The mean of 1e308s overflows, so shares are taken from weights of a smaller scale.
    std::vector<double> scaled = weights;
    for (double& weight : scaled) weight /= *std::max_element(weights.begin(), weights.end());
    EXPECT_LT(std::abs(chi_square_deviations(samples(categorical), shares_of(scaled))), 4);
  }
  const auto zipf = zipf_shares(256, 1.1);
  EXPECT_LT(std::abs(chi_square_deviations(samples(Categorical(zipf)), zipf)), 4);
}

TEST(Categorical, OfOnePositiveWeightIsCertain) {
  const Categorical categorical(std::vector<double>{0, 0, 7, 0});
  for (const double index : samples(categorical)) ASSERT_EQ(index, 2);
}

/// Weights whose scaled values do not sum to their number leave cells over; none may go to a weight
/// of 0.
TEST(Categorical, NeverDrawsAWeightOfZeroWhateverTheRounding) {
  Stream stream(4);
  for (int round = 0; round < 300; ++round) {
    std::vector<double> weights(1 + uniform_index(stream, 40));
    for (double& weight : weights) weight = uniform(stream) < 0.4 ? 0 : uniform(stream);
    weights[0] = 0.1;
    const Categorical categorical(weights);
    for (int i = 0; i < 300; ++i) ASSERT_GT(weights[categorical(stream)], 0);
  }
}

TEST(Categorical, RefusesWeightsThatAreNoDistribution) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& weights :
       std::vector<std::vector<double>>{{}, {0, 0}, {1, -1}, {1, inf}, {nan, 1}}) {
    EXPECT_THROW(Categorical{weights}, std::invalid_argument);
  }
}

TEST(Distributions, TakeTheDrawsTheySay) {
  Stream stream(3);
  uniform(stream);
  EXPECT_EQ(stream.position(), 1u);
  normal(stream);
  EXPECT_EQ(stream.position(), 2u);
  log_normal(stream, 2);
  EXPECT_EQ(stream.position(), 3u);
  uniform_index(stream, 10);
  EXPECT_EQ(stream.position(), 4u);
  Categorical(std::vector<double>{1, 2, 3})(stream);
  EXPECT_EQ(stream.position(), 6u);
}

/// One number for the bits of many samples; a change of it is a change of every scenario.
template <class Draw>
std::uint64_t fingerprint(Draw draw) {
  std::uint64_t hash = 0;
  for (const double value : samples(draw)) {
    hash = std::rotl(hash ^ std::bit_cast<std::uint64_t>(value), 29) * 0x9E3779B97F4A7C15u;
  }
  return hash;
}

TEST(Distributions, GiveTheKnownSamples) {
  EXPECT_EQ(fingerprint(uniform), 0xebea1170d5cf6647u);
  EXPECT_EQ(fingerprint([](Stream& stream) { return uniform_index(stream, 896); }), 0x9f0df846d59c9927u);
  EXPECT_EQ(fingerprint(normal), 0xd245df8950d9bccau);
  EXPECT_EQ(fingerprint([](Stream& stream) { return log_normal(stream, 1.5); }), 0x45c1b6189a0de4b3u);
  EXPECT_EQ(fingerprint(Categorical(zipf_shares(100, 1.1))), 0x9b9037447a44f4ffu);
}

}  // namespace
}  // namespace ballast
