#include <gtest/gtest.h>

#include "core/arithmetic/functions.h"
#include "core/balancers/quantile_balancer.h"
#include "core/balancers/sign_balancer.h"
#include "core/metrics/load_metrics.h"
#include "core/model/selection.h"
#include "core/random/distributions.h"

/// How fast balancers balance one and the same batch, step after step: 1024 tokens, 16 experts, top-2,
/// sigmoid scores of normal logits, with a preference of the whole batch for some experts.
namespace ballast {
namespace {

constexpr std::size_t tokens = 1024, experts = 16, top_k = 2;

Matrix<float> frozen_scores() {
  Stream stream(5);
  std::vector<double> preference(experts);
  for (double& each : preference) each = 0.5 * normal(stream);
  Matrix<float> scores(tokens, experts);
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t j = 0; j < experts; ++j) {
      scores(t, j) = static_cast<float>(arithmetic::sigmoid(preference[j] + 0.45 * normal(stream)));
    }
  }
  return scores;
}

double max_violation(const Selection<float>& selection) {
  std::vector<std::int64_t> loads(experts);
  count_assignments(selection.indices, {}, loads);
  return load_metrics(loads)->max_violation;
}

/// Max violation under the biases of each step, the first of them zero.
std::vector<double> max_violations(Balancer& balancer, std::size_t steps) {
  const Matrix<float> scores = frozen_scores();
  std::vector<double> violations;
  for (std::size_t step = 0; step < steps; ++step) {
    const auto selection = select_top_k<float>(scores, balancer.biases(), top_k);
    violations.push_back(max_violation(selection));
    balancer.observe({scores.view(), selection.cutoffs, selection.indices.view(), {}});
    balancer.end_step(true);
  }
  return violations;
}

// The toy of the project's fact sheet: quantiles 3.8 -> 0.5 -> 0.2 -> 0.1 in three steps; signs at 1e-3
// 3.8 -> 1.7 after 100 steps and 0.16 after 200. Bounds are about half as much again.
TEST(BalanceSpeed, QuantilesTakeAFewStepsWhereSignsTakeHundreds) {
  QuantileBalancer quantile(experts, top_k, {.estimator = QuantileEstimatorKind::exact});
  const auto by_quantile = max_violations(quantile, 6);
  SignBalancer sign(experts, {.rate = 1e-3});
  const auto by_sign = max_violations(sign, 301);
  EXPECT_NEAR(by_quantile[0], 3.8, 0.6);
  EXPECT_EQ(by_quantile[0], by_sign[0]);
  EXPECT_LT(by_quantile[1], 0.75);
  EXPECT_LT(by_quantile[2], 0.35);
  EXPECT_LT(by_quantile[5], 0.1);
  EXPECT_GT(by_sign[10], 3.0);
  EXPECT_GT(by_sign[100], 1.0);
  EXPECT_LT(by_sign[100], 2.5);
  EXPECT_LT(by_sign[300], 0.25);
}

TEST(BalanceSpeed, GainTwoOscillatesAndGainThreeDiverges) {
  const auto under_gain = [](double gain) {
    QuantileBalancer balancer(experts, top_k, {.estimator = QuantileEstimatorKind::exact, .gain = gain});
    return max_violations(balancer, 30);
  };
  EXPECT_GT(under_gain(2.0)[2], under_gain(1.0)[2]);
  EXPECT_EQ(under_gain(3.0).back(), static_cast<double>(experts) / top_k - 1.0);  // one expert in every token
}

// Estimates that are n steps old overshoot: with a gain of 1 the biases come back after n + 1 steps.
TEST(BalanceSpeed, StaleEstimatesAreAppliedThatManyStepsLater) {
  QuantileBalancer fresh(experts, top_k, {.estimator = QuantileEstimatorKind::exact});
  QuantileBalancer stale(experts, top_k,
                         {.estimator = QuantileEstimatorKind::exact, .stale_updates = 2});
  const auto by_fresh = max_violations(fresh, 2), by_stale = max_violations(stale, 6);
  for (std::size_t step = 0; step < 3; ++step) EXPECT_EQ(by_stale[step], by_fresh[0]);
  for (std::size_t step = 3; step < 6; ++step) EXPECT_EQ(by_stale[step], by_fresh[1]);
}

}  // namespace
}  // namespace ballast
