#include "core/random/gumbel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "core/arithmetic/functions.h"
#include "core/random/stream.h"

namespace ballast {
namespace {

std::vector<float> gumbels(std::uint64_t key, std::size_t count) {
  std::vector<float> values(count);
  fill_gumbel(key, values);
  return values;
}

/// The definition, one value at a time.
float defined(std::uint64_t key, std::size_t i) {
  Stream stream(key);
  stream.seek(i / 2);
  const std::uint64_t draw = stream();
  const auto word = static_cast<std::uint32_t>(i % 2 == 0 ? draw : draw >> 32);
  const float u = (static_cast<float>(word >> 9) + 0.5f) / 8388608.0f;
  return -arithmetic::log(-arithmetic::log(u));
}

TEST(Gumbel, IsTheDefinitionToTheBitAtEveryPlace) {
  for (const std::uint64_t key : {0x0ull, 0x123456789abcdefull}) {
    const auto values = gumbels(key, 1001);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]),
                std::bit_cast<std::uint32_t>(defined(key, i)))
          << "key " << key << ", value " << i;
    }
  }
}

TEST(Gumbel, DoesNotDependOnHowManyValuesAreAskedFor) {
  const auto all = gumbels(7, 200);
  for (const std::size_t count : {0u, 1u, 63u, 64u, 65u}) {
    const auto some = gumbels(7, count);
    EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin())) << count;
  }
}

TEST(Gumbel, HasTheMeanAndVarianceOfTheDistribution) {
  const auto values = gumbels(11, 1'000'000);
  double sum = 0.0, squares = 0.0;
  for (const float value : values) {
    sum += value;
    squares += double{value} * value;
  }
  const double n = static_cast<double>(values.size()), mean = sum / n;
  const double variance =
      1.6449340668482264;  // pi^2 / 6; its fourth central moment is 5.4 variance^2
  EXPECT_NEAR(mean, 0.5772156649015329, 5 * std::sqrt(variance / n));
  EXPECT_NEAR(squares / n - mean * mean, variance, 5 * variance * std::sqrt(4.4 / n));
}

TEST(Gumbel, ChoosesByWeight) {
  const std::vector<double> weights = {0.5, 0.3, 0.15, 0.05};
  std::vector<double> chosen(4, 0.0);
  constexpr std::size_t draws = 40'000;
  std::vector<float> row(4);
  for (std::size_t i = 0; i < draws; ++i) {
    fill_gumbel(Stream(5).child(i).key(), row);
    for (std::size_t j = 0; j < 4; ++j) row[j] += static_cast<float>(std::log(weights[j]));
    chosen[static_cast<std::size_t>(std::ranges::max_element(row) - row.begin())] += 1.0;
  }
  for (std::size_t j = 0; j < 4; ++j) {
    const double deviation = std::sqrt(weights[j] * (1 - weights[j]) / draws);
    EXPECT_NEAR(chosen[j] / draws, weights[j], 5 * deviation) << j;
  }
}

}  // namespace
}  // namespace ballast
