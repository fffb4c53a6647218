#include "core/balancers/histogram.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/balancers/required_biases.h"
#include "tests/core/support/routing_cases.h"
#include "tests/core/support/selection.h"

namespace ballast {
namespace {

std::vector<double> centred(std::vector<double> values) {
  double sum = 0;
  for (const double v : values) sum += v;
  for (double& v : values) v -= sum / static_cast<double>(values.size());
  return values;
}

void expect_near(const std::vector<double>& is, const std::vector<double>& should) {
  ASSERT_EQ(is.size(), should.size());
  for (std::size_t j = 0; j < is.size(); ++j) EXPECT_NEAR(is[j], should[j], 1e-6) << j;
}

// Golden vector B, second part.
TEST(HistogramQuantile, OfTwoCountsThenSixLandsOnTheEdgeBetween) {
  const HistogramRange range(std::vector<float>(4), 10);
  std::vector<double> estimates;
  for (std::size_t expert = 0; expert < 4; ++expert) {
    std::vector<std::int64_t> counts(10);
    counts[2 * expert + 2] = 2;
    counts[2 * expert + 3] = 6;
    estimates.push_back(histogram_quantile(range, counts, 8, 1, 4));
  }
  expect_near(centred(estimates), {-0.6, -0.2, 0.2, 0.6});
}

// Golden vector C.
TEST(HistogramQuantile, RecoversTheMegatronExample) {
  const HistogramRange range(std::vector<float>(2), 4);
  const std::vector<std::int64_t> first{0, 2, 2, 0}, second{2, 2, 0, 0};
  const auto biases = centred(
      {histogram_quantile(range, first, 4, 1, 2), histogram_quantile(range, second, 4, 1, 2)});
  expect_near(biases, {0.25, -0.25});
  const HistogramRange next(std::vector<float>{0.25f, -0.25f}, 4);
  EXPECT_EQ(next.low(), -1.25f);
  EXPECT_EQ(next.high(), 1.25f);
}

TEST(HistogramQuantile, TakesRanksBeyondFloatAndInt32Exactly) {
  // 2^33 + 1 tokens, half of them due: rank 2^32 + 1 is the single count of the second bin. In
  // float the target would round down into the first.
  const HistogramRange range(std::vector<float>(2), 4);
  const std::int64_t half = std::int64_t{1} << 32;
  const std::vector<std::int64_t> counts{half, 1, half, 0};
  const double estimate = histogram_quantile(range, counts, 2 * half + 1, 1, 2);
  EXPECT_EQ(estimate, -1.0 + 1.5 * 0.5);
}

// |bhat - r_(ceil q)| <= w, and the count under fixed cutoffs is off by at most the occupancy of
// the bin.
RC_GTEST_PROP(HistogramQuantile, KeepsWithinABinOfTheOrderStatisticAndItsCounts, ()) {
  const auto c = oracle::drawn_routing_case();
  const auto bins = *rc::gen::inRange<std::size_t>(2, 50);
  const HistogramRange range(c.biases, bins);
  const auto required =
      required_biases(oracle::route(c.scores, c.biases, c.top_k).batch(), c.experts(), c.top_k);
  const auto m = static_cast<std::int64_t>(c.tokens());
  const double q = static_cast<double>(c.tokens() * c.top_k) / static_cast<double>(c.experts());
  const auto ceil_q = static_cast<std::size_t>(std::ceil(q));
  for (std::size_t j = 0; j < c.experts(); ++j) {
    std::vector<float> column;
    for (std::size_t i = 0; i < c.tokens(); ++i) column.push_back(required(i, j));
    std::sort(column.begin(), column.end());
    std::vector<std::int64_t> counts(bins);
    for (const float r : column) ++counts[range.bin(r)];

    const double estimate = histogram_quantile(range, counts, m, c.top_k, c.experts());
    const float statistic = column[ceil_q - 1];
    const double rounding = 1e-6;
    RC_ASSERT(std::abs(estimate - static_cast<double>(statistic)) <= range.width() + rounding);

    const auto occupancy = static_cast<double>(counts[range.bin(statistic)]);
    const auto below = [&](double limit) {
      return static_cast<double>(std::count_if(
          column.begin(), column.end(), [&](float r) { return static_cast<double>(r) < limit; }));
    };
    RC_ASSERT(below(estimate - rounding) <= q + occupancy);
    RC_ASSERT(below(estimate + rounding) >= q - occupancy);
  }
}

// In fp32, with no allowance for rounding, and for biases and scores of every binary digit.
RC_GTEST_PROP(HistogramRange, HoldsEveryRequiredBiasOfScoresBetweenZeroAndOne, ()) {
  const auto experts = *rc::gen::inRange<std::size_t>(2, 9);
  const auto top_k = *rc::gen::inRange<std::size_t>(1, experts);
  const float scale = *rc::gen::element(1e-6f, 0.3f, 7.7f, 12345.6f);
  const auto biases = oracle::drawn_multiples(experts, -1000000, 1000000, scale * 1.1e-6f);
  auto scores = oracle::drawn_multiples(20 * experts, 0, 9999991, 1.0f / 9999991.0f);
  scores[0] = 0.0f;
  scores[1] = 1.0f;
  Matrix<float> matrix(20, experts);
  std::transform(scores.begin(), scores.end(), matrix.values().begin(),
                 [](float s) { return std::min(s, 1.0f); });
  const HistogramRange range(biases, 1000);
  const auto required =
      required_biases(oracle::route(matrix, biases, top_k).batch(), experts, top_k);
  for (const float r : required.values()) {
    RC_ASSERT(r >= range.low());
    RC_ASSERT(r <= range.high());
  }
}

RC_GTEST_PROP(HistogramRange, BinsRiseWithTheValue, ()) {
  const auto biases = oracle::drawn_multiples(3, -1000, 1000, 0.01f);
  const HistogramRange range(biases, *rc::gen::inRange<std::size_t>(2, 2000));
  auto values = oracle::drawn_multiples(50, -2000, 2000, 0.007f);
  std::sort(values.begin(), values.end());
  for (std::size_t i = 1; i < values.size(); ++i) {
    RC_ASSERT(range.bin(values[i - 1]) <= range.bin(values[i]));
  }
}

TEST(HistogramRange, KnowsTheLeastAndTheLargestValueOfEachBin) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const auto& biases : {std::vector<float>{0.0f, 0.0f}, std::vector<float>{-0.2f, 0.31f},
                             std::vector<float>{-3e5f, 1e6f}}) {
    for (const std::size_t bins : {1, 2, 7, 1000, 65536}) {
      const HistogramRange range(biases, bins);
      EXPECT_EQ(range.least_of(0), -infinity);
      EXPECT_EQ(range.largest_of(bins - 1), infinity);
      for (std::size_t bin = 1; bin < bins; ++bin) {
        const float least = range.least_of(bin);
        ASSERT_GE(range.bin(least), bin) << bins;
        ASSERT_LT(range.bin(std::nextafter(least, -infinity)), bin) << bins;
        ASSERT_EQ(range.largest_of(bin - 1), std::nextafter(least, -infinity));
      }
    }
  }
}

TEST(HistogramRange, PutsValuesOutsideIntoTheEdgeBins) {
  const HistogramRange range(std::vector<float>(2), 10);
  const float huge = std::numeric_limits<float>::max();
  for (const float below : {-1.05f, -1.25f, -huge}) EXPECT_EQ(range.bin(below), 0u);
  for (const float above : {1.0f, 1.05f, huge}) EXPECT_EQ(range.bin(above), 9u);
}

TEST(HistogramRange, PutsAValueOnAnEdgeIntoTheUpperBin) {
  // Division in fp32 gives 499.99997 here.
  EXPECT_EQ(HistogramRange(std::vector<float>(2), 1000).bin(0.0f), 500u);
  EXPECT_EQ(HistogramRange(std::vector<float>(2), 10).bin(0.0f), 5u);
}

TEST(HistogramRange, PassesOverBiasesThatAreNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  const HistogramRange range(std::vector<float>{-infinity, 0.5f, NAN, -0.25f, infinity}, 7);
  EXPECT_EQ(range, HistogramRange(std::vector<float>{0.5f, -0.25f}, 7));
}

TEST(HistogramRange, RefusesBiasesThatGiveNoRange) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bias : {infinity, -infinity, static_cast<float>(NAN), 1e9f, 3e38f}) {
    EXPECT_THROW(HistogramRange(std::vector<float>(2, bias), 10), std::invalid_argument) << bias;
  }
  EXPECT_EQ(HistogramRange(std::vector<float>{3e38f, -3e38f}, 10).bin(0.0f), 5u);
}

}  // namespace
}  // namespace ballast
