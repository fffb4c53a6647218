#include "core/random/fills.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "core/arithmetic/functions.h"
#include "core/random/distributions.h"
#include "core/random/normal_table.h"

namespace ballast {
namespace {

using Fill = void (*)(Stream&, std::span<float>);

void fill_log_normal_of_half(Stream& stream, std::span<float> out) {
  fill_log_normal(stream, 0.5f, out);
}

constexpr Fill all_fills[] = {fill_uniform, fill_normal, fill_log_normal_of_half, fill_gumbel};

std::vector<float> filled(Fill fill, Stream stream, std::size_t count) {
  std::vector<float> values(count);
  fill(stream, values);
  return values;
}

/// The words that the values are made of, by the definition.
std::vector<std::uint32_t> words(Stream stream, std::size_t count) {
  std::vector<std::uint32_t> words;
  while (words.size() < count) {
    const std::uint64_t draw = stream();
    words.push_back(static_cast<std::uint32_t>(draw));
    words.push_back(static_cast<std::uint32_t>(draw >> 32));
  }
  words.resize(count);
  return words;
}

template <class Distribution>
double kolmogorov_smirnov(std::vector<float> values, Distribution distribution) {
  std::ranges::sort(values);
  const auto n = static_cast<double>(values.size());
  double distance = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double expected = distribution(static_cast<double>(values[i]));
    distance = std::max({distance, expected - static_cast<double>(i) / n,
                         static_cast<double>(i + 1) / n - expected});
  }
  return distance * std::sqrt(n);  // above 1.95 with probability 0.001
}

double normal_distribution(double z) {
  return std::erfc(-z / std::sqrt(2.0)) / 2;
}

// Known answers, of which the uniform values also come from another program for Philox.
TEST(Fills, HaveTheirKnownBits) {
  const auto bits = [](Fill fill) {
    std::vector<std::uint32_t> found;
    for (const float value : filled(fill, Stream(1), 4)) {
      found.push_back(std::bit_cast<std::uint32_t>(value));
    }
    return found;
  };
  EXPECT_EQ(bits(fill_uniform),
            (std::vector<std::uint32_t>{1063512070, 1063586318, 1058402850, 1060509098}));
  EXPECT_EQ(bits(fill_normal),
            (std::vector<std::uint32_t>{1049537107, 1049150758, 1068436482, 1062031811}));
  EXPECT_EQ(bits(fill_log_normal_of_half),
            (std::vector<std::uint32_t>{1066607260, 1066551907, 1073585352, 1069491642}));
  EXPECT_EQ(bits(fill_gumbel),
            (std::vector<std::uint32_t>{1074379676, 1074562527, 1059072991, 1065996923}));
}

TEST(Fills, OfUniformValuesAreTheDefinitionToTheBit) {
  const auto values = filled(fill_uniform, Stream(3), 1001);
  const auto from = words(Stream(3), 1001);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], std::ldexp(static_cast<float>(from[i] >> 8), -24)) << i;
  }
}

TEST(Fills, OfGumbelValuesAreTheDefinitionToTheBit) {
  for (const std::uint64_t key : {0x0ull, 0x123456789abcdefull}) {
    const auto values = filled(fill_gumbel, Stream(key), 1001);
    const auto from = words(Stream(key), 1001);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float u = (static_cast<float>(from[i] >> 9) + 0.5f) / 8388608.0f;
      ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]),
                std::bit_cast<std::uint32_t>(-arithmetic::log(-arithmetic::log(u))))
          << "key " << key << ", value " << i;
    }
  }
}

TEST(Fills, OfNormalValuesAreTheQuantilesOfTheirWords) {
  const std::size_t count = 1 << 18;
  const auto values = filled(fill_normal, Stream(4), count);
  const auto from = words(Stream(4), count);
  double largest_error = 0.0;
  for (std::size_t i = 0; i < count; ++i) {
    const double size =
        -normal_quantile((static_cast<double>(from[i] & 0x7fffffff) + 0.5) * 0x1p-32);
    const double expected = from[i] >> 31 != 0 ? size : -size;
    largest_error = std::max(largest_error, std::abs(double{values[i]} - expected));
  }
  EXPECT_LT(largest_error, 1e-6);
}

TEST(Fills, OfNormalValuesAreAccurateInEveryOctave) {
  const auto& table = normal_table();
  for (std::size_t octave = 0; octave < kernels::NormalTable::octaves; ++octave) {
    const double smallest = std::ldexp(1.0, static_cast<int>(octave) - 33);
    for (int step = 0; step <= 100; ++step) {
      const float x = static_cast<float>(step) / 100.0f - 0.5f;
      float z = 0.0f;
      for (std::size_t i = kernels::NormalTable::terms; i-- > 0;) {
        z = std::fma(z, x, table.coefficients[i][octave]);
      }
      const double p = smallest * (1.5 + double{x});
      ASSERT_NEAR(double{z}, normal_quantile(p), 1e-6) << "octave " << octave << ", x " << x;
    }
  }
}

TEST(Fills, OfLogNormalValuesAreExponentialsOfTheNormalOnes) {
  const auto normals = filled(fill_normal, Stream(6), 1001);
  const auto values = filled(fill_log_normal_of_half, Stream(6), 1001);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], arithmetic::exp(0.5f * normals[i])) << i;
  }
}

TEST(Fills, HaveTheirDistributions) {
  constexpr std::size_t count = 1'000'000;
  EXPECT_LT(kolmogorov_smirnov(filled(fill_uniform, Stream(7), count), [](double x) { return x; }),
            1.95);
  EXPECT_LT(kolmogorov_smirnov(filled(fill_normal, Stream(7), count), normal_distribution), 1.95);
  EXPECT_LT(kolmogorov_smirnov(filled(fill_log_normal_of_half, Stream(7), count),
                               [](double x) { return normal_distribution(std::log(x) / 0.5); }),
            1.95);
  EXPECT_LT(kolmogorov_smirnov(filled(fill_gumbel, Stream(7), count),
                               [](double x) { return std::exp(-std::exp(-x)); }),
            1.95);
}

TEST(Fills, OfNormalValuesHaveItsMomentsAndTails) {
  constexpr std::size_t count = 4'000'000;
  const auto values = filled(fill_normal, Stream(8), count);
  double sums[5] = {};
  double beyond_4 = 0.0;
  for (const float value : values) {
    double power = 1.0;
    for (double& sum : sums) {
      sum += power;
      power *= double{value};
    }
    beyond_4 += std::abs(value) > 4.0f ? 1.0 : 0.0;
  }
  const double root = std::sqrt(static_cast<double>(count));
  // The variance of z^n is E z^2n - (E z^n)^2: 1, 2, 15, 96.
  EXPECT_NEAR(sums[1] / count, 0.0, 5.0 / root);
  EXPECT_NEAR(sums[2] / count, 1.0, 5.0 * std::sqrt(2.0) / root);
  EXPECT_NEAR(sums[3] / count, 0.0, 5.0 * std::sqrt(15.0) / root);
  EXPECT_NEAR(sums[4] / count, 3.0, 5.0 * std::sqrt(96.0) / root);
  const double expected = 2.0 * normal_distribution(-4.0) * count;
  EXPECT_NEAR(beyond_4, expected, 5.0 * std::sqrt(expected));
}

TEST(Fills, OfGumbelValuesChooseByWeight) {
  const std::vector<double> weights = {0.5, 0.3, 0.15, 0.05};
  std::vector<double> chosen(4, 0.0);
  constexpr std::size_t draws = 40'000;
  for (std::size_t i = 0; i < draws; ++i) {
    auto row = filled(fill_gumbel, Stream(5).child(i), 4);
    for (std::size_t j = 0; j < 4; ++j) row[j] += static_cast<float>(std::log(weights[j]));
    chosen[static_cast<std::size_t>(std::ranges::max_element(row) - row.begin())] += 1.0;
  }
  for (std::size_t j = 0; j < 4; ++j) {
    const double deviation = std::sqrt(weights[j] * (1 - weights[j]) / draws);
    EXPECT_NEAR(chosen[j] / draws, weights[j], 5 * deviation) << j;
  }
}

TEST(Fills, ReachAnyPositionAtOnce) {
  for (const Fill fill : all_fills) {
    const auto all = filled(fill, Stream(9), 1200);
    for (const std::size_t position : {0u, 1u, 2u, 7u, 400u}) {
      Stream stream(9);
      stream.seek(position);
      const auto some = filled(fill, stream, 333);
      EXPECT_TRUE(std::equal(some.begin(), some.end(), all.data() + 2 * position)) << position;
    }
  }
}

TEST(Fills, LeaveTheStreamBehindWhatTheyTook) {
  for (const Fill fill : all_fills) {
    Stream stream(10);
    std::vector<float> values(5);
    fill(stream, values);
    EXPECT_EQ(stream.position(), 3u);
    fill(stream, std::span(values).first(2));
    EXPECT_EQ(stream.position(), 4u);
    fill(stream, {});
    EXPECT_EQ(stream.position(), 4u);
  }
}

}  // namespace
}  // namespace ballast
