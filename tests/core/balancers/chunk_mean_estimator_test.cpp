#include "core/balancers/chunk_mean_estimator.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "tests/core/support/matrices.h"
#include "tests/core/support/quantile_cases.h"
#include "tests/core/support/routing_cases.h"

namespace ballast {
namespace {

using oracle::matrix;

const std::vector<float> zeros(2);

// The q-th largest margin s - alpha, negated; margins sorted here from the other side.
RC_GTEST_PROP(ChunkMeanEstimator, OfOneRankIsTheNegatedQthLargestMargin, ()) {
  const auto c = oracle::drawn_routing_case();
  ChunkMeanEstimator estimator(c.experts(), c.top_k);
  oracle::observe(estimator, c.scores, c.biases, c.top_k);
  const auto estimate = *estimator.estimate(c.biases);
  const auto routed = oracle::route(c.scores, c.biases, c.top_k);
  const auto q = std::max<std::size_t>(1, c.tokens() * c.top_k / c.experts());
  for (std::size_t j = 0; j < c.experts(); ++j) {
    std::vector<float> margins;
    for (std::size_t i = 0; i < c.tokens(); ++i)
      margins.push_back(c.scores(i, j) - routed.cutoffs[i]);
    std::sort(margins.begin(), margins.end(), std::greater<>());
    RC_ASSERT(estimate[j] == -static_cast<double>(margins[q - 1]));
  }
}

TEST(ChunkMeanEstimator, PoolsARanksMicrobatchesAndGivesEveryRankTheSameWeight) {
  ChunkMeanEstimator estimator(2, 1);
  // Rank 0: r_0 = -0.25, -0.125, 0 and -0.5 over two forwards, q = 2, so -0.25. Rank 7: one token,
  // q = 1.
  oracle::observe(estimator, matrix({{0.75f, 0.5f}, {0.625f, 0.5f}, {0.25f, 0.5f}}), zeros, 1, 0);
  oracle::observe(estimator, matrix({{0.5f, 0.375f}}), zeros, 1, 7);
  oracle::observe(estimator, matrix({{1.0f, 0.5f}}), zeros, 1, 0);
  EXPECT_EQ(*estimator.estimate(zeros), (std::vector<double>{(-0.25 - 0.125) / 2, 0.0}));
  EXPECT_EQ(estimator.tokens(), 5);
}

TEST(ChunkMeanEstimator, RefusesStatesThatNoForwardsLeft) {
  const auto refuses = [](std::vector<std::int64_t> ranks, std::vector<std::int64_t> tokens,
                          std::vector<float> required) {
    StateDict state;
    state.put("chunk_mean.ranks", ranks);
    state.put("chunk_mean.tokens", tokens);
    state.put("chunk_mean.required", required);
    try {
      ChunkMeanEstimator(2, 1).load(state, "", zeros);
    } catch (const std::invalid_argument&) {
      return true;
    }
    return false;
  };
  EXPECT_FALSE(refuses({0, 3}, {2, 1}, {0, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(refuses({3, 0}, {2, 1}, {0, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(refuses({0, 3}, {2, 2}, {0, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(refuses({0, 3}, {1, 1}, {0, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(refuses({0, 3}, {3, 0}, {0, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(refuses({0, 3}, {2, 1}, {0, 0, 0, 0, 0}));
  EXPECT_TRUE(refuses({0, 3}, {2, 1}, {0, 0, NAN, 0, 0, 0}));
}

}  // namespace
}  // namespace ballast
