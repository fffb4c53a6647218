#include "core/balancers/sign_balancer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "tests/core/support/load_bias_cases.h"

namespace ballast {
namespace {

using oracle::bits;
using oracle::Counts;
using oracle::step;

std::vector<float> after(const Counts& loads, const SignSettings& settings) {
  SignBalancer balancer(loads.size(), settings);
  return step(balancer, loads);
}

const SignSettings all_forms[] = {{},
                                  {.centred = true},
                                  {.step = SignStep::rms},
                                  {.step = SignStep::rms, .centred = true}};

// The loads of the Kimi K3 report's Fig. 5: mean 2.
TEST(SignBalancer, MovesByTheRateTowardsTheMeanLoad) {
  EXPECT_EQ(after({4, 3, 1, 0}, {}), (std::vector<float>{-1e-3f, -1e-3f, 1e-3f, 1e-3f}));
  EXPECT_EQ(after({4, 3, 1, 0}, {.rate = 0.25}), (std::vector<float>{-.25f, -.25f, .25f, .25f}));
}

TEST(SignBalancer, LeavesAnExpertAtTheMeanAlone) {
  EXPECT_EQ(bits(after({3, 2, 1}, {.rate = 0.5})), bits(std::vector<float>{-0.5f, 0.0f, 0.5f}));
}

TEST(SignBalancer, ComparesWithAFractionalMeanExactly) {
  // The mean is 4/3: a load of 1 is below it.
  EXPECT_EQ(after({2, 1, 1}, {.rate = 0.5}), (std::vector<float>{-0.5f, 0.5f, 0.5f}));
  // In fp32, or with counts above 2^53, the two would be the same.
  const std::int64_t many = std::int64_t{1} << 55;
  EXPECT_EQ(shortfalls(std::vector<std::int64_t>{many, many + 1, many + 2}),
            (std::vector<std::int64_t>{3, 0, -3}));
}

TEST(SignBalancer, AccumulatesItsMoves) {
  SignBalancer balancer(2, {.rate = 0.25});
  for (int i = 0; i < 4; ++i) step(balancer, {3, 1});
  EXPECT_EQ(step(balancer, {1, 3}), (std::vector<float>{-0.75f, 0.75f}));
}

// Signs (-1, 1, 1) have mean 1/3.
TEST(SignBalancer, CentredTakesTheMeanOffTheMoves) {
  const auto b = after({4, 1, 1}, {.rate = 0.75, .centred = true});
  EXPECT_EQ(b, (std::vector<float>{-1.0f, 0.5f, 0.5f}));
}

// mean(L) - L = (-2, -1, 1, 2), RMS sqrt(10 / 4).
TEST(SignBalancer, NormalisedMovesInProportionToTheDifference) {
  const auto b = after({4, 3, 1, 0}, {.rate = 0.1, .step = SignStep::rms});
  const double unit = 0.1 / std::sqrt(2.5);
  const double expected[] = {-2 * unit, -unit, unit, 2 * unit};
  for (std::size_t j = 0; j < 4; ++j) EXPECT_NEAR(b[j], expected[j], 1e-8);
}

TEST(SignBalancer, DoesNothingInBalance) {
  for (const auto& form : all_forms) {
    EXPECT_EQ(bits(after({7, 7, 7}, form)), bits(std::vector<float>{0, 0, 0}));
  }
}

TEST(SignBalancer, KeepsWhatAllLoadBalancersKeep) {
  for (SignSettings form : all_forms) {
    oracle::expect_what_all_load_balancers_keep([&](std::size_t experts, const LoadBiasSettings& loads) {
      form.loads = loads;
      return std::make_unique<SignBalancer>(experts, form);
    });
  }
}

TEST(SignBalancer, RefusesARateThatIsNone) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double rate : {0.0, -1e-3, nan, std::numeric_limits<double>::infinity()}) {
    EXPECT_THROW(SignBalancer(2, {.rate = rate}), std::invalid_argument) << rate;
  }
  EXPECT_THROW(SignBalancer(0, {}), std::invalid_argument);
}

RC_GTEST_PROP(SignBalancer, CentredConservesTheMeanOfTheBiases, ()) {
  const auto experts = *rc::gen::inRange<std::size_t>(1, 9);
  SignBalancer balancer(experts, {.rate = 0.01,
                                  .step = *rc::gen::element(SignStep::sign, SignStep::rms),
                                  .centred = true});
  for (int i = 0; i < 20; ++i) step(balancer, oracle::drawn_loads(experts));
  const auto b = balancer.biases();
  const double sum = std::accumulate(b.begin(), b.end(), 0.0);
  // Each of 20 steps rounds each bias, which is below 1, once.
  RC_ASSERT(std::abs(sum) <= 20.0 * static_cast<double>(experts) * 0x1p-25);
}

// Sums of squares and means are in the order of the experts: equal to the bit only without them.
RC_GTEST_PROP(SignBalancer, PermutedExpertsGivePermutedBiases, ()) {
  const auto experts = *rc::gen::inRange<std::size_t>(1, 9);
  const auto loads = oracle::drawn_loads(experts);
  for (const auto& form : all_forms) {
    const auto b = after(loads, form);
    const auto reversed = after(Counts(loads.rbegin(), loads.rend()), form);
    for (std::size_t j = 0; j < experts; ++j) {
      RC_ASSERT(std::abs(b[j] - reversed[experts - 1 - j]) <= 1e-9f);
    }
  }
  const auto b = after(loads, {});
  const auto reversed = after(Counts(loads.rbegin(), loads.rend()), {});
  RC_ASSERT(bits(b) == bits(std::vector<float>(reversed.rbegin(), reversed.rend())));
}

RC_GTEST_PROP(SignBalancer, NormalisedDependsOnSharesOnly, ()) {
  const auto loads = oracle::drawn_loads(5);
  Counts tripled;
  for (const std::int64_t load : loads) tripled.push_back(3 * load);
  const auto b = after(loads, {.step = SignStep::rms});
  const auto other = after(tripled, {.step = SignStep::rms});
  for (std::size_t j = 0; j < 5; ++j) RC_ASSERT(std::abs(b[j] - other[j]) <= 1e-9f);
}

}  // namespace
}  // namespace ballast
