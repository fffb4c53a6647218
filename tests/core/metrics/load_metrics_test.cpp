#include "core/metrics/load_metrics.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

namespace ballast {
namespace {

using Loads = std::vector<std::int64_t>;

std::int64_t total(const Loads& loads) {
  return std::accumulate(loads.begin(), loads.end(), std::int64_t{0});
}

/// Loads of `experts` experts after `tokens` tokens chose `top_k` different ones each.
struct Routing {
  Loads loads;
  std::int64_t experts;
  std::int64_t top_k;
};

/// Small, skewed and tie-heavy: a token prefers low indices by a drawn strength.
rc::Gen<Routing> any_routing() {
  return rc::gen::exec([] {
    const auto experts = *rc::gen::inRange<std::size_t>(1, 13);
    const auto top_k = *rc::gen::inRange<std::size_t>(1, experts + 1);
    const auto tokens = *rc::gen::inRange<int>(1, 30);
    const auto reach = *rc::gen::inRange<std::size_t>(1, experts + 1);
    Loads loads(experts, 0);
    for (int token = 0; token < tokens; ++token) {
      const auto first = *rc::gen::inRange<std::size_t>(0, reach);
      for (std::size_t rank = 0; rank < top_k; ++rank) ++loads[(first + rank) % experts];
    }
    return Routing{loads, static_cast<std::int64_t>(experts), static_cast<std::int64_t>(top_k)};
  });
}

/// Loads of any size up to what the metrics allow, many of them zero or equal.
rc::Gen<Loads> any_loads() {
  const auto load =
      rc::gen::oneOf(rc::gen::just(std::int64_t{0}), rc::gen::inRange<std::int64_t>(0, 4),
                     rc::gen::inRange<std::int64_t>(0, 1000),
                     rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 45));
  return rc::gen::suchThat(rc::gen::container<Loads>(load),
                           [](const Loads& loads) { return total(loads) > 0; });
}

// The textbook formulas in long double, term by term in the given order: an oracle of another
// shape.
long double naive_cv(const Loads& loads) {
  const auto n = static_cast<long double>(loads.size());
  const long double mean = static_cast<long double>(total(loads)) / n;
  long double variance = 0;
  for (const auto load : loads)
    variance +=
        (static_cast<long double>(load) - mean) * (static_cast<long double>(load) - mean) / n;
  return std::sqrt(variance) / mean;
}

long double naive_entropy(const Loads& loads) {
  long double entropy = 0;
  for (const auto load : loads) {
    const long double share =
        static_cast<long double>(load) / static_cast<long double>(total(loads));
    if (load > 0) entropy -= share * std::log(share);
  }
  return entropy;
}

long double naive_gini(const Loads& loads) {
  long double differences = 0;
  for (const auto a : loads) {
    for (const auto b : loads) differences += static_cast<long double>(std::llabs(a - b));
  }
  return differences /
         (2 * static_cast<long double>(loads.size()) * static_cast<long double>(total(loads)));
}

void expect_close(double actual, long double expected) {
  RC_ASSERT(std::abs(static_cast<long double>(actual) - expected) <=
            1e-14L * std::max(1.0L, std::abs(expected)));
}

// ---- Properties of any real routing, which follow from the definitions

RC_GTEST_PROP(LoadMetrics, MaxViolationStaysBelowWhatDistinctChoicesAllow, ()) {
  const auto [loads, experts, top_k] = *any_routing();
  const double most = static_cast<double>(experts - top_k) / static_cast<double>(top_k);
  RC_ASSERT(load_metrics(loads)->max_violation <= most);
}

RC_GTEST_PROP(LoadMetrics, FewerExpertsWithTokensForceALargerMaxViolation, ()) {
  const auto loads = *any_loads();
  const auto metrics = load_metrics(loads).value();
  const auto experts = static_cast<std::int64_t>(loads.size());
  const auto alive = experts - metrics.dead_experts;
  RC_ASSERT(metrics.frac_with_tokens == static_cast<double>(alive) / static_cast<double>(experts));
  // 1 / frac_with_tokens - 1, rounded once.
  RC_ASSERT(metrics.max_violation >=
            static_cast<double>(metrics.dead_experts) / static_cast<double>(alive));
}

RC_GTEST_PROP(LoadMetrics, AnExpertIsDeadExactlyWhenMinViolationIsMinusOne, ()) {
  const auto loads = *any_loads();
  const auto metrics = load_metrics(loads).value();
  const bool dead = std::ranges::count(loads, 0) > 0;
  RC_ASSERT((metrics.frac_with_tokens < 1.0) == dead);
  RC_ASSERT((metrics.min_violation == -1.0) == dead);
  RC_ASSERT(std::isinf(metrics.max_over_min) == dead);
  RC_ASSERT(metrics.dead_experts == std::ranges::count(loads, 0));
}

RC_GTEST_PROP(LoadMetrics, NoExpertIsOversubscribedOnlyUnderPerfectBalance, ()) {
  const auto loads = *any_loads();
  const auto metrics = load_metrics(loads).value();
  const auto experts = static_cast<double>(loads.size());
  const bool balanced = std::ranges::adjacent_find(loads, std::not_equal_to{}) == loads.end();
  RC_ASSERT((metrics.frac_oversubscribed == 0.0) == balanced);
  RC_ASSERT(metrics.frac_oversubscribed <= (experts - 1.0) / experts);
}

RC_GTEST_PROP(LoadMetrics, WhatTheLeastLoadedMissesTheOversubscribedCarry, ()) {
  const auto loads = *any_loads();
  const auto metrics = load_metrics(loads).value();
  const double carried =
      static_cast<double>(loads.size()) * metrics.frac_oversubscribed * metrics.max_violation;
  RC_ASSERT(carried >= -metrics.min_violation * (1.0 - 1e-15));
}

// ---- Symmetries and bounds

RC_GTEST_PROP(LoadMetrics, WhichExpertCarriesWhichLoadDoesNotMatterToTheBit, ()) {
  const auto loads = *any_loads();
  auto shuffled = loads;
  const auto steps = *rc::gen::container<std::vector<std::size_t>>(
      2 * loads.size(), rc::gen::inRange<std::size_t>(0, loads.size()));
  for (std::size_t i = 0; i + 1 < steps.size(); i += 2)
    std::swap(shuffled[steps[i]], shuffled[steps[i + 1]]);
  RC_ASSERT(load_metrics(shuffled) == load_metrics(loads));
}

RC_GTEST_PROP(LoadMetrics, DoublingEveryLoadChangesNothingToTheBit, ()) {
  const auto loads = *any_loads();
  auto doubled = loads;
  for (auto& load : doubled) load *= 2;
  RC_ASSERT(load_metrics(doubled) == load_metrics(loads));
}

RC_GTEST_PROP(LoadMetrics, EveryFigureStaysInItsRange, ()) {
  const auto loads = *any_loads();
  const auto m = load_metrics(loads).value();
  const auto experts = static_cast<double>(loads.size());
  RC_ASSERT(m.max_violation >= 0.0);
  RC_ASSERT(m.max_violation <= experts - 1.0);
  RC_ASSERT(m.min_violation >= -1.0);
  RC_ASSERT(m.min_violation <= 0.0);
  RC_ASSERT(m.load_cv >= 0.0);
  RC_ASSERT(m.load_cv <= std::sqrt(experts - 1.0) * (1.0 + 1e-15));
  RC_ASSERT(m.load_cv <=
            std::sqrt(m.max_violation) *
                (1.0 + 1e-15));  // Bhatia and Davis (2000): variance <= (max - mean)(mean - min)
  RC_ASSERT(m.entropy >= 0.0);
  RC_ASSERT(m.kl_to_uniform >= 0.0);
  RC_ASSERT(m.entropy_normalised >= 0.0);
  RC_ASSERT(m.entropy_normalised <= 1.0);
  RC_ASSERT(m.gini >= 0.0);
  RC_ASSERT(m.gini <= (experts - 1.0) / experts);
  RC_ASSERT(m.max_over_mean >= 1.0);
  RC_ASSERT(m.balancedness <= 1.0);
  RC_ASSERT(m.balancedness >= 1.0 / experts);
  RC_ASSERT(m.max_over_min >= m.max_over_mean);
}

RC_GTEST_PROP(LoadMetrics, AgreesWithTheTextbookFormulas, ()) {
  const auto loads = *any_loads();
  const auto m = load_metrics(loads).value();
  const auto log_experts = std::log(static_cast<long double>(loads.size()));
  expect_close(m.load_cv, naive_cv(loads));
  expect_close(m.gini, naive_gini(loads));
  expect_close(m.entropy, naive_entropy(loads));
  expect_close(m.kl_to_uniform, log_experts - naive_entropy(loads));
  if (loads.size() > 1) expect_close(m.entropy_normalised, naive_entropy(loads) / log_experts);
  expect_close(m.max_over_mean, m.max_violation + 1.0L);
  expect_close(m.balancedness, 1.0L / static_cast<long double>(m.max_over_mean));
}

// ---- Anchors

TEST(LoadMetrics, PerfectBalanceMeetsEveryBoundExactly) {
  for (const std::size_t experts : {1u, 2u, 3u, 7u, 64u, 896u}) {
    const auto m = load_metrics(Loads(experts, 37)).value();
    const LoadMetrics expected{.frac_with_tokens = 1.0,
                               .entropy = m.entropy,
                               .entropy_normalised = 1.0,
                               .max_over_mean = 1.0,
                               .balancedness = 1.0,
                               .max_over_min = 1.0};
    EXPECT_EQ(m, expected) << experts;
    EXPECT_NEAR(m.entropy, std::log(static_cast<double>(experts)), 1e-14);
  }
}

TEST(LoadMetrics, TotalCollapseMeetsEveryBoundExactly) {
  for (const std::size_t experts : {2u, 3u, 7u, 64u, 896u}) {
    Loads loads(experts, 0);
    loads[experts / 2] = 1001;
    const auto m = load_metrics(loads).value();
    const auto n = static_cast<double>(experts);
    const LoadMetrics expected{.frac_with_tokens = 1.0 / n,
                               .frac_oversubscribed = 1.0 / n,
                               .max_violation = n - 1.0,
                               .min_violation = -1.0,
                               .load_cv = m.load_cv,
                               .entropy = 0.0,
                               .entropy_normalised = 0.0,
                               .kl_to_uniform = m.kl_to_uniform,
                               .gini = (n - 1.0) / n,
                               .dead_experts = static_cast<std::int64_t>(experts) - 1,
                               .max_over_mean = n,
                               .balancedness = 1.0 / n,
                               .max_over_min = std::numeric_limits<double>::infinity()};
    EXPECT_EQ(m, expected) << experts;
    EXPECT_DOUBLE_EQ(m.load_cv, std::sqrt(n - 1.0));
    EXPECT_NEAR(m.kl_to_uniform, std::log(n), 1e-14);
  }
}

TEST(LoadMetrics, ATokenChoosesDifferentExpertsSoTopKCollapseStopsAtExpertsOverKMinusOne) {
  Loads loads(60, 0);
  std::fill_n(loads.begin(), 4, 25);
  EXPECT_EQ(load_metrics(loads)->max_violation, 14.0);
}

TEST(LoadMetrics, WithoutAssignmentsThereIsNoValue) {
  EXPECT_EQ(load_metrics({}), std::nullopt);
  EXPECT_EQ(load_metrics(Loads(8, 0)), std::nullopt);
}

TEST(LoadMetrics, ALoadOfExactlyFairIsNotOversubscribed) {
  EXPECT_EQ(load_metrics(Loads{4, 4, 3, 5})->frac_oversubscribed, 0.25);
  // Fair is 1/3 of a token: every expert with any token is above it.
  EXPECT_EQ(load_metrics(Loads{1, 0, 0})->frac_oversubscribed, 1.0 / 3.0);
}

TEST(LoadMetrics, OneAssignmentTooManyIsSeenPastTwoToTheThirtyOne) {
  constexpr std::int64_t large = std::int64_t{1} << 43;
  Loads loads(896, large);
  loads[7] += 1;
  const auto m = load_metrics(loads).value();
  EXPECT_EQ(m.frac_oversubscribed, 1.0 / 896.0);
  EXPECT_GT(m.max_violation, 0.0);
  EXPECT_DOUBLE_EQ(m.max_violation, 895.0 / 896.0 / static_cast<double>(large));
  EXPECT_LT(m.min_violation, 0.0);
  EXPECT_GT(m.load_cv, 0.0);
  EXPECT_DOUBLE_EQ(m.load_cv, std::sqrt(895.0) / 896.0 / static_cast<double>(large));
  EXPECT_DOUBLE_EQ(m.gini, 895.0 / 896.0 / (896.0 * static_cast<double>(large)));
}

TEST(LoadMetrics, TheLargestTotalIsStillExact) {
  const std::int64_t half = std::int64_t{1} << 52;
  EXPECT_EQ(load_metrics(Loads{half, half})->load_cv, 0.0);
  EXPECT_EQ(load_metrics(Loads{2 * half, 0})->load_cv, 1.0);
  Loads many(std::size_t{1} << 20, 0);
  many[0] = 2 * half;
  const auto collapsed = load_metrics(many).value();
  EXPECT_EQ(collapsed.max_over_mean, static_cast<double>(many.size()));
  EXPECT_DOUBLE_EQ(collapsed.load_cv, std::sqrt(static_cast<double>(many.size() - 1)));
}

TEST(LoadMetrics, RefusesWhatIsNoCountOrTooLargeToBeExact) {
  EXPECT_THROW(load_metrics(Loads{3, -1}), std::invalid_argument);
  EXPECT_THROW(load_metrics(Loads{std::int64_t{1} << 53, 1}), std::invalid_argument);
  EXPECT_THROW(load_metrics(Loads{std::numeric_limits<std::int64_t>::max(), 1}),
               std::invalid_argument);
  EXPECT_THROW(load_metrics(Loads((std::size_t{1} << 20) + 1, 1)), std::invalid_argument);
}

// ---- Real loads

TEST(LoadMetrics, GivesThePublishedFiguresOfRealLayers) {
  const auto mixtral = load_metrics(Loads{65, 65, 85, 87, 79, 129, 87, 77}).value();
  EXPECT_NEAR(mixtral.max_violation, 0.531157, 5e-7);
  EXPECT_NEAR(mixtral.min_violation, -0.228487, 5e-7);
  EXPECT_EQ(mixtral.frac_oversubscribed, 0.5);
  EXPECT_NEAR(mixtral.load_cv, 0.223618, 5e-7);
  EXPECT_NEAR(mixtral.entropy_normalised, 0.988894, 5e-7);
  EXPECT_NEAR(mixtral.gini, 0.110163, 5e-7);

  const auto switch_base = load_metrics(Loads{17, 16, 32, 18, 46, 44, 21, 21}).value();
  EXPECT_NEAR(switch_base.max_violation, 0.711628, 5e-7);
  EXPECT_NEAR(switch_base.min_violation, -0.404651, 5e-7);
  EXPECT_EQ(switch_base.frac_oversubscribed, 0.375);
}

}  // namespace
}  // namespace ballast
