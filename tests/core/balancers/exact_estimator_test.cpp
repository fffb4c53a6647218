#include "core/balancers/exact_estimator.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "tests/core/support/matrices.h"
#include "tests/core/support/quantile_cases.h"
#include "tests/core/support/routing_cases.h"

namespace ballast {
namespace {

using oracle::expect_near;
using oracle::matrix;

// The contract of the order statistic, #{r < bhat} <= q < #{r <= bhat}, with q = m k / E as a
// fraction: both sides times E, in integers. Holds for every m >= 1 and 1 <= k < E, so for q < 1
// and k = E - 1 too.
RC_GTEST_PROP(ExactEstimator, LeavesAtMostQBelowAndMoreThanQNotAbove, ()) {
  const auto c = oracle::drawn_routing_case();
  ExactEstimator estimator(c.experts(), c.top_k);
  oracle::observe(estimator, c.scores, c.biases, c.top_k);
  const auto estimate = *estimator.estimate(c.biases);
  const auto required =
      required_biases(oracle::route(c.scores, c.biases, c.top_k).batch(), c.experts(), c.top_k);
  const std::size_t q_times_experts = c.tokens() * c.top_k;
  for (std::size_t j = 0; j < c.experts(); ++j) {
    std::size_t below = 0, not_above = 0;
    for (std::size_t i = 0; i < c.tokens(); ++i) {
      below += static_cast<double>(required(i, j)) < estimate[j] ? 1 : 0;
      not_above += static_cast<double>(required(i, j)) <= estimate[j] ? 1 : 0;
    }
    RC_ASSERT(below * c.experts() <= q_times_experts);
    RC_ASSERT(q_times_experts < not_above * c.experts());
  }
}

// Facts 1 and 6: an overloaded expert comes down, no other one does, and nothing moves that need
// not.
RC_GTEST_PROP(ExactEstimator, MovesBiasesAgainstTheLoad, ()) {
  const auto c = oracle::drawn_routing_case();
  const auto routed = oracle::route(c.scores, c.biases, c.top_k);
  ExactEstimator estimator(c.experts(), c.top_k);
  oracle::observe(estimator, c.scores, c.biases, c.top_k);
  const auto estimate = *estimator.estimate(c.biases);
  const auto required = required_biases(routed.batch(), c.experts(), c.top_k);
  for (std::size_t j = 0; j < c.experts(); ++j) {
    const auto b = static_cast<double>(c.biases[j]);
    std::size_t below = 0, tied = 0;  // the load, and C_j, when no biased scores tie
    for (std::size_t i = 0; i < c.tokens(); ++i) {
      below += required(i, j) < c.biases[j] ? 1 : 0;
      tied += required(i, j) == c.biases[j] ? 1 : 0;
    }
    const std::size_t q_times_experts = c.tokens() * c.top_k;
    if (below * c.experts() > q_times_experts) {
      RC_ASSERT(estimate[j] < b);
    } else if (q_times_experts < (below + tied) * c.experts()) {
      RC_ASSERT(estimate[j] == b);
    } else {
      RC_ASSERT(estimate[j] > b);
    }
  }
}

// Golden vector E: q = 2, the third smallest.
TEST(ExactEstimator, GivesTheHandExample) {
  const auto scores = matrix({{0.9f, 0.5f}, {0.8f, 0.7f}, {0.7f, 0.2f}, {0.6f, 0.45f}});
  ExactEstimator estimator(2, 1);
  oracle::observe(estimator, scores, std::vector<float>(2), 1);
  expect_near(*estimator.estimate(std::vector<float>(2)), std::vector<double>{-0.15, 0.0});
}

TEST(ExactEstimator, OfOneTokenTakesItsOnlyValue) {
  ExactEstimator estimator(3, 1);
  oracle::observe(estimator, matrix({{0.75f, 0.5f, 0.25f}}), std::vector<float>(3), 1);
  EXPECT_EQ(*estimator.estimate(std::vector<float>(3)), (std::vector<double>{-0.25, 0.0, 0.25}));
}

TEST(ExactEstimator, TakesTheSmallestWhenFewerTokensThanExpertsShareTheLoad) {
  // m k / E = 2 / 3: rank floor(q) + 1 = 1.
  ExactEstimator estimator(3, 1);
  oracle::observe(estimator, matrix({{0.75f, 0.5f, 0.25f}, {0.5f, 0.375f, 0.0f}}),
                  std::vector<float>(3), 1);
  EXPECT_EQ(*estimator.estimate(std::vector<float>(3)), (std::vector<double>{-0.25, 0.0, 0.25}));
}

TEST(ExactEstimator, RoundsAFractionalTargetDown) {
  // m k / E = 4 / 3: the second smallest of -0.5, -0.25, -0.125, 0.
  const auto scores = matrix({{0.5f, 0, 0}, {0.25f, 0, 0}, {0.125f, 0, 0}, {0, 0, 0}});
  ExactEstimator estimator(3, 1);
  oracle::observe(estimator, scores, std::vector<float>(3), 1);
  EXPECT_EQ((*estimator.estimate(std::vector<float>(3)))[0], -0.25);
}

TEST(ExactEstimator, WorksWhenOnlyOneExpertIsLeftOut) {
  // k = E - 1: the cutoff is the worst score. q = 4 * 2 / 3, so the third smallest.
  const auto scores =
      matrix({{0.5f, 0.25f, 0}, {0.5f, 0.25f, 0}, {0.5f, 0.25f, 0}, {0.5f, 0.25f, 0}});
  ExactEstimator estimator(3, 2);
  oracle::observe(estimator, scores, std::vector<float>(3), 2);
  EXPECT_EQ(*estimator.estimate(std::vector<float>(3)), (std::vector<double>{-0.5, -0.25, 0}));
}

}  // namespace
}  // namespace ballast
