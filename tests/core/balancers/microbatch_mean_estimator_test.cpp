#include "core/balancers/microbatch_mean_estimator.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/balancers/exact_estimator.h"
#include "tests/core/support/bits.h"
#include "tests/core/support/matrices.h"
#include "tests/core/support/quantile_cases.h"
#include "tests/core/support/routing_cases.h"

namespace ballast {
namespace {

using oracle::bits;
using oracle::matrix;

const std::vector<float> zeros(2);

// With one token and k = 1, E = 2 the estimate is r itself: (-d, 0) for scores (0.5 + d, 0.5).
Matrix<float> token(float difference) {
  return matrix({{0.5f + difference, 0.5f}});
}

TEST(MicrobatchMeanEstimator, GivesEveryRankTheSameWeight) {
  MicrobatchMeanEstimator estimator(2, 1);
  oracle::observe(estimator, token(0.25f), zeros, 1, 0);
  oracle::observe(estimator, token(0.125f), zeros, 1, 0);
  oracle::observe(estimator, token(0.125f), zeros, 1, 0);
  oracle::observe(estimator, token(0.125f), zeros, 1, 0);
  oracle::observe(estimator, token(0.5f), zeros, 1, 5);  // ranks 1 to 4 take no part
  const double rank0 = -(0.25 + 3 * 0.125) / 4;
  EXPECT_EQ(*estimator.estimate(zeros), (std::vector<double>{(rank0 - 0.5) / 2, 0.0}));
}

RC_GTEST_PROP(MicrobatchMeanEstimator, OfOneForwardIsExact, ()) {
  const auto c = oracle::drawn_routing_case();
  MicrobatchMeanEstimator mean(c.experts(), c.top_k);
  ExactEstimator exact(c.experts(), c.top_k);
  oracle::observe(mean, c.scores, c.biases, c.top_k, 3);
  oracle::observe(exact, c.scores, c.biases, c.top_k);
  RC_ASSERT(bits(*mean.estimate(c.biases)) == bits(*exact.estimate(c.biases)));
}

TEST(MicrobatchMeanEstimator, DoesNotDependOnHowTheForwardsOfRanksInterleave) {
  MicrobatchMeanEstimator a(2, 1), b(2, 1);
  for (const std::size_t rank : {0u, 1u, 2u}) {
    oracle::observe(a, token(0.1f), zeros, 1, rank);
    oracle::observe(a, token(0.3f + 0.01f * static_cast<float>(rank)), zeros, 1, rank);
  }
  for (const std::size_t rank : {2u, 0u, 1u}) oracle::observe(b, token(0.1f), zeros, 1, rank);
  for (const std::size_t rank : {1u, 2u, 0u}) {
    oracle::observe(b, token(0.3f + 0.01f * static_cast<float>(rank)), zeros, 1, rank);
  }
  EXPECT_EQ(bits(*a.estimate(zeros)), bits(*b.estimate(zeros)));
}

TEST(MicrobatchMeanEstimator, RefusesStatesThatNoForwardsLeft) {
  const auto refuses = [](std::vector<std::int64_t> ranks, std::vector<std::int64_t> microbatches,
                          std::vector<std::int64_t> tokens, std::vector<double> sums) {
    StateDict state;
    state.put("microbatch_mean.ranks", ranks);
    state.put("microbatch_mean.microbatches", microbatches);
    state.put("microbatch_mean.tokens", tokens);
    state.put("microbatch_mean.sums", sums);
    try {
      MicrobatchMeanEstimator(2, 1).load(state, "", zeros);
    } catch (const std::invalid_argument&) {
      return true;
    }
    return false;
  };
  EXPECT_FALSE(refuses({0, 2}, {1, 1}, {3, 1}, {0, 0, 0, 0}));
  EXPECT_TRUE(refuses({2, 0}, {1, 1}, {3, 1}, {0, 0, 0, 0}));
  EXPECT_TRUE(refuses({0, 0}, {1, 1}, {3, 1}, {0, 0, 0, 0}));
  EXPECT_TRUE(refuses({-1, 0}, {1, 1}, {3, 1}, {0, 0, 0, 0}));
  EXPECT_TRUE(refuses({0, 2}, {1, 0}, {3, 1}, {0, 0, 0, 0}));
  EXPECT_TRUE(refuses({0, 2}, {1, 1}, {3, 0}, {0, 0, 0, 0}));
  EXPECT_TRUE(refuses({0, 2}, {1, 1}, {3}, {0, 0, 0, 0}));
  EXPECT_TRUE(refuses({0, 2}, {1, 1}, {3, 1}, {0, 0, 0}));
  EXPECT_TRUE(refuses({0, 2}, {1, 1}, {3, 1}, {0, 0, 0, NAN}));
}

}  // namespace
}  // namespace ballast
