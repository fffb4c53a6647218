#include "core/balancers/smebu_balancer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "tests/core/support/load_bias_cases.h"

namespace ballast {
namespace {

using oracle::bits;
using oracle::step;

// The definition, written out with the C library: v = (-1, -0.5, 0.5, 1).
TEST(SmebuBalancer, GivesTheMovesOfTheReportsFormula) {
  SmebuBalancer balancer(4, {});
  std::vector<double> momentum(4), expected(4);
  for (const auto& v : {std::vector<double>{-1, -0.5, 0.5, 1}, {1, 1, -1, -1}, {-2, 0, 1, 1}}) {
    std::vector<std::int64_t> loads;
    for (const double each : v) loads.push_back(static_cast<std::int64_t>(2.0 * (1.0 - each)));
    const auto b = step(balancer, loads);
    double mean = 0.0;
    for (const double each : v) mean += 5e-4 * std::tanh(2.0 * each) / 4.0;
    for (std::size_t j = 0; j < 4; ++j) {
      momentum[j] = 0.5 * momentum[j] + 0.5 * (5e-4 * std::tanh(2.0 * v[j]) - mean);
      expected[j] += momentum[j];
      EXPECT_NEAR(b[j], expected[j], 1e-10) << j;
    }
  }
}

// tanh(2) = 0.9640276, tanh(1) = 0.7615942; half of them in the first step.
TEST(SmebuBalancer, GivesAGoldenVector) {
  SmebuBalancer balancer(4, {});
  const auto b = step(balancer, {4, 3, 1, 0});
  const double expected[] = {-2.410069e-4, -1.903985e-4, 1.903985e-4, 2.410069e-4};
  for (std::size_t j = 0; j < 4; ++j) EXPECT_NEAR(b[j], expected[j], 1e-10);
}

TEST(SmebuBalancer, GoesOnByItsMomentumInBalance) {
  SmebuBalancer balancer(2, {.rate = 1.0, .momentum = 0.5});
  const float first = step(balancer, {2, 0})[1];
  EXPECT_NEAR(step(balancer, {1, 1})[1], 1.5f * first, 1e-6f);
  EXPECT_NEAR(step(balancer, {1, 1})[1], 1.75f * first, 1e-6f);
}

TEST(SmebuBalancer, NeverMovesInBalanceFromRest) {
  SmebuBalancer balancer(3, {});
  EXPECT_EQ(bits(step(balancer, {5, 5, 5})), bits(std::vector<float>{0, 0, 0}));
}

TEST(SmebuBalancer, KeepsWhatAllLoadBalancersKeep) {
  oracle::expect_what_all_load_balancers_keep(
      [](std::size_t experts, const LoadBiasSettings& loads) {
        return std::make_unique<SmebuBalancer>(experts, SmebuSettings{.loads = loads});
      });
}

TEST(SmebuBalancer, RefusesAStateWhoseMomentumIsNotFinite) {
  SmebuBalancer balancer(2, {});
  StateDict state;
  balancer.save(state, "");
  state.put("momentum", std::vector<double>{0.0, std::numeric_limits<double>::infinity()});
  EXPECT_THROW(balancer.load(state, ""), std::invalid_argument);
}

TEST(SmebuBalancer, RefusesSettingsOutOfRange) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const SmebuSettings& wrong :
       {SmebuSettings{.rate = 0.0}, {.rate = nan}, {.kappa = -2.0}, {.kappa = nan},
        {.momentum = 1.0}, {.momentum = -0.1}, {.momentum = nan}}) {
    EXPECT_THROW(SmebuBalancer(2, wrong), std::invalid_argument);
  }
  EXPECT_THROW(SmebuBalancer(0, {}), std::invalid_argument);
}

RC_GTEST_PROP(SmebuBalancer, ConservesTheMeanOfTheBiases, ()) {
  const auto experts = *rc::gen::inRange<std::size_t>(1, 9);
  SmebuBalancer balancer(experts, {.rate = 0.01});
  for (int i = 0; i < 20; ++i) step(balancer, oracle::drawn_loads(experts));
  const auto b = balancer.biases();
  // Each of 20 steps rounds each bias, which is below 1/2, once.
  RC_ASSERT(std::abs(std::accumulate(b.begin(), b.end(), 0.0)) <=
            20.0 * static_cast<double>(experts) * 0x1p-26);
}

RC_GTEST_PROP(SmebuBalancer, NeverMovesFurtherThanTwiceItsRate, ()) {
  const auto experts = *rc::gen::inRange<std::size_t>(2, 9);
  SmebuBalancer balancer(experts, {.rate = 1.0});
  std::vector<float> before(experts);
  for (int i = 0; i < 10; ++i) {
    const auto b = step(balancer, oracle::drawn_loads(experts));
    for (std::size_t j = 0; j < experts; ++j) RC_ASSERT(std::abs(b[j] - before[j]) <= 2.0f);
    before = b;
  }
}

}  // namespace
}  // namespace ballast
