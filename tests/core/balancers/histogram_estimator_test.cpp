#include "core/balancers/histogram_estimator.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "tests/core/support/matrices.h"
#include "tests/core/support/quantile_cases.h"
#include "tests/core/support/routing_cases.h"

namespace ballast {
namespace {

using oracle::expect_near;
using oracle::matrix;

std::vector<std::int64_t> counts(const HistogramEstimator& estimator, std::size_t expert) {
  return estimator.counts(expert);
}

Matrix<float> vector_f() {
  return matrix({{.81f, .32f, .24f, .45f},
                 {.74f, .55f, .13f, .62f},
                 {.66f, .61f, .42f, .29f},
                 {.93f, .27f, .36f, .17f}});
}

// Golden vector F.
TEST(HistogramEstimator, GivesTheCountsAndEstimatesOfVectorF) {
  const std::vector<float> biases{0.05f, -0.02f, 0.0f, -0.03f};
  HistogramEstimator estimator(4, 2, 10);
  oracle::observe(estimator, vector_f(), biases, 2);
  EXPECT_EQ(counts(estimator, 0), (std::vector<std::int64_t>{0, 1, 1, 2, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(counts(estimator, 1), (std::vector<std::int64_t>{0, 0, 0, 0, 4, 0, 0, 0, 0, 0}));
  EXPECT_EQ(counts(estimator, 2), (std::vector<std::int64_t>{0, 0, 0, 0, 2, 1, 1, 0, 0, 0}));
  EXPECT_EQ(counts(estimator, 3), (std::vector<std::int64_t>{0, 0, 0, 0, 2, 2, 0, 0, 0, 0}));
  expect_near(*estimator.estimate(biases), std::vector<double>{-0.406, -0.094, 0.010, 0.010});
}

// Golden vector G: q = 5/3, rank 2.
TEST(HistogramEstimator, GivesTheCountsAndEstimatesOfVectorG) {
  const std::vector<float> biases{0.07f, -0.03f, -0.04f};
  HistogramEstimator estimator(3, 1, 8);
  oracle::observe(estimator,
                  matrix({{.81f, .32f, .24f},
                          {.74f, .55f, .13f},
                          {.66f, .61f, .42f},
                          {.93f, .27f, .36f},
                          {.58f, .19f, .51f}}),
                  biases, 1);
  EXPECT_EQ(counts(estimator, 0), (std::vector<std::int64_t>{0, 2, 0, 3, 0, 0, 0, 0}));
  EXPECT_EQ(counts(estimator, 1), (std::vector<std::int64_t>{0, 0, 0, 3, 1, 1, 0, 0}));
  EXPECT_EQ(counts(estimator, 2), (std::vector<std::int64_t>{0, 0, 0, 2, 2, 1, 0, 0}));
  expect_near(*estimator.estimate(biases),
              std::vector<double>{-0.556458333, -0.102222222, -0.028958333});
}

// Golden vector E with 1000 bins: 0.25 away from the exact rule, with the same loads.
TEST(HistogramEstimator, MayBeFarFromTheExactRuleWhereSamplesLeaveAGap) {
  HistogramEstimator estimator(2, 1, 1000);
  oracle::observe(estimator, matrix({{0.9f, 0.5f}, {0.8f, 0.7f}, {0.7f, 0.2f}, {0.6f, 0.45f}}),
                  std::vector<float>(2), 1);
  expect_near(*estimator.estimate(std::vector<float>(2)), std::vector<double>{-0.398, 0.001});
}

// Conservation: a reduction that counts a rank twice does not move a quantile, but moves these.
RC_GTEST_PROP(HistogramEstimator, CountsEveryValidTokenOnceForEveryExpert, ()) {
  const auto first = oracle::drawn_routing_case();
  HistogramEstimator estimator(first.experts(), first.top_k, 17);
  const auto forwards = *rc::gen::inRange<std::size_t>(1, 4);
  for (std::size_t f = 0; f < forwards; ++f) {
    oracle::observe(estimator, first.scores, first.biases, first.top_k, f);
  }
  const auto tokens = static_cast<std::int64_t>(forwards * first.tokens());
  RC_ASSERT(estimator.tokens() == tokens);
  RC_ASSERT(estimator.clamped() == ClampedCounts{});
  for (std::size_t j = 0; j < first.experts(); ++j) {
    const auto view = estimator.counts(j);
    RC_ASSERT(std::accumulate(view.begin(), view.end(), std::int64_t{0}) == tokens);
  }
}

// Fact 11: the counts below the bin of b_j, and those up to it, enclose the load of the step. The
// cases' sums are exact and ties of biased scores only move tokens that have r = b_j.
RC_GTEST_PROP(HistogramEstimator, ImpliesTheLoadsOfTheStep, ()) {
  const auto c = oracle::drawn_routing_case();
  HistogramEstimator estimator(c.experts(), c.top_k, 64);
  oracle::observe(estimator, c.scores, c.biases, c.top_k);
  const auto loads = oracle::loads(oracle::route(c.scores, c.biases, c.top_k));
  const HistogramRange range(c.biases, 64);
  for (std::size_t j = 0; j < c.experts(); ++j) {
    const auto view = estimator.counts(j);
    const auto bin = static_cast<std::ptrdiff_t>(range.bin(c.biases[j]));
    const auto below = std::accumulate(view.begin(), view.begin() + bin, std::int64_t{0});
    RC_ASSERT(below <= loads[j]);
    RC_ASSERT(loads[j] <= below + view[static_cast<std::size_t>(bin)]);
  }
}

TEST(HistogramEstimator, CountsWhatItClampsOnEachSide) {
  // Logits leave [-1, 1]: the cutoffs are 2 and 0, so r = 2 - 5 below, 2 - 0 and 0 + 4 above.
  HistogramEstimator estimator(3, 1, 10);
  oracle::observe(estimator, matrix({{5, 2, 0}, {0.5f, 0, -4}}), std::vector<float>(3), 1);
  EXPECT_EQ(estimator.clamped(), (ClampedCounts{.below = 1, .above = 2}));
  EXPECT_EQ(estimator.counts(0)[0], 1);
  EXPECT_EQ(estimator.counts(2)[9], 2);
  estimator.clear();
  EXPECT_EQ(estimator.tokens(), 0);
  EXPECT_EQ(estimator.clamped(), (ClampedCounts{.below = 1, .above = 2}));
}

TEST(HistogramEstimator, RefusesBiasesThatChangedUnderPendingObservations) {
  const std::vector<float> old(3), moved{0.5f, 0.0f, -0.5f};
  HistogramEstimator estimator(3, 1, 10);
  oracle::observe(estimator, matrix({{0.5f, 0.25f, 0}}), old, 1);
  EXPECT_THROW(oracle::observe(estimator, matrix({{0.5f, 0.25f, 0}}), moved, 1), std::logic_error);
  EXPECT_THROW(estimator.estimate(moved), std::logic_error);
  EXPECT_EQ(estimator.tokens(), 1);
  estimator.clear();
  oracle::observe(estimator, matrix({{0.5f, 0.25f, 0}}), moved, 1);
  EXPECT_TRUE(estimator.estimate(moved));
}

TEST(HistogramEstimator, CountsPastTheLimitOfInt32) {
  const std::vector<float> biases(2);
  const std::int64_t many = (std::int64_t{1} << 31) - 1;
  StateDict state;
  state.put("histogram.counts", std::vector<std::int64_t>{0, many, 0, 0, 0, 0, many, 0});
  state.put("histogram.clamped", std::vector<std::int64_t>{0, 0});
  HistogramEstimator estimator(2, 1, 4);
  estimator.load(state, "", biases);
  oracle::observe(estimator, matrix({{0.75f, 0.5f}}), biases, 1);  // r = (-0.25, 0): bins 1 and 2
  EXPECT_EQ(counts(estimator, 0), (std::vector<std::int64_t>{0, many + 1, 0, 0}));
  EXPECT_EQ(counts(estimator, 1), (std::vector<std::int64_t>{0, 0, many + 1, 0}));
  EXPECT_EQ(estimator.tokens(), many + 1);
  EXPECT_EQ(*estimator.estimate(biases), (std::vector<double>{-0.25, 0.25}));
}

TEST(HistogramEstimator, RefusesCountsThatNoForwardsLeft) {
  const std::vector<float> biases(2);
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::vector<std::int64_t>> wrong = {
      {1, 0, 0, 1, 0},     // one too many
      {1, 0, 0, 2},        // experts with different totals
      {2, -1, 1, 0},       // a negative count
      {0, 0, 0, 0},        // saved as empty when nothing is pending
      {most, 0, most, 0},  // total * k overflows
      {most, most, most, most}};
  for (const auto& counts : wrong) {
    StateDict state;
    state.put("histogram.counts", counts);
    state.put("histogram.clamped", std::vector<std::int64_t>{0, 0});
    EXPECT_THROW(HistogramEstimator(2, 1, 2).load(state, "", biases), std::invalid_argument);
  }
  StateDict state;
  state.put("histogram.counts", std::vector<std::int64_t>{});
  state.put("histogram.clamped", std::vector<std::int64_t>{0, -1});
  EXPECT_THROW(HistogramEstimator(2, 1, 2).load(state, "", biases), std::invalid_argument);
}

}  // namespace
}  // namespace ballast
