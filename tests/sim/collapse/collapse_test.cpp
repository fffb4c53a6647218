#include "sim/collapse/collapse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/random/distributions.h"
#include "sim/collapse/noise.h"

namespace ballast::sim {
namespace {

using Weights = std::vector<double>;

/// Loads of tokens that choose k different experts by these weights, one after the other.
std::vector<std::int64_t> draw_loads(const Weights& weights, std::size_t tokens, std::size_t k,
                                     Stream stream) {
  std::vector<std::int64_t> loads(weights.size(), 0);
  const Categorical choose{std::span<const double>(weights)};
  for (std::size_t t = 0; t < tokens; ++t) {
    std::vector<std::size_t> chosen;
    while (chosen.size() < k) {
      const std::size_t j = choose(stream);
      if (std::ranges::find(chosen, j) == chosen.end()) chosen.push_back(j);
    }
    for (const std::size_t j : chosen) ++loads[j];
  }
  return loads;
}

/// A run of one layer whose weights are a function of the step (from 1).
std::vector<StepRecord> run_of(std::size_t steps, std::size_t tokens, std::size_t k,
                               const std::function<Weights(std::size_t)>& weights,
                               std::uint64_t seed = 1) {
  std::vector<StepRecord> records;
  for (std::size_t step = 1; step <= steps; ++step) {
    StepRecord record;
    record.step = step;
    record.tokens = static_cast<std::int64_t>(tokens);
    record.distinct_inputs = record.tokens;
    record.loads = {draw_loads(weights(step), tokens, k, Stream(seed).child(step))};
    records.push_back(std::move(record));
  }
  return records;
}

Weights even(std::size_t experts) {
  return Weights(experts, 1.0);
}

Weights log_normal_weights(std::size_t experts, double sigma, std::uint64_t seed) {
  Stream stream = Stream(seed).child("weights");
  Weights weights(experts);
  for (double& w : weights) w = log_normal(stream, sigma);
  return weights;
}

void expect_only(const CollapseReport& report, CollapseKind kind, std::size_t first,
                 std::size_t last) {
  EXPECT_EQ(report.verdict, CollapseVerdict::collapsed);
  ASSERT_TRUE(report.find(kind)) << word(kind);
  EXPECT_GE(report.find(kind)->onset, first);
  EXPECT_LE(report.find(kind)->onset, last);
}

TEST(Collapse, IsNotSeenInChance) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const auto& [experts, k] : {std::pair(8, 2), std::pair(64, 1), std::pair(64, 8)}) {
      const auto e = static_cast<std::size_t>(experts), c = static_cast<std::size_t>(k);
      const auto steps = run_of(
          40, 4 * e / c, c, [&](std::size_t) { return even(e); }, seed);
      const auto report = find_collapse(steps, c);
      EXPECT_EQ(report.verdict, CollapseVerdict::healthy) << e << " " << c << " " << seed;
      EXPECT_TRUE(report.findings.empty());
    }
  }
}

/// llama.cpp#28544: a healthy router of 512 experts, top-10: in some 1300 tokens 98.6 % of the
/// slots are active, and the hottest has 2.5 times the fair load.
TEST(Collapse, IsNotSeenInAHealthyLargeRouter) {
  Weights weights(512, 1.0);
  for (std::size_t j = 0; j < 512; ++j) weights[j] = j % 70 == 0 ? 0.0002 : 1.0;
  weights[3] = 2.5;
  const auto report = find_collapse(run_of(12, 1300, 10, [&](std::size_t) { return weights; }), 10);
  EXPECT_EQ(report.verdict, CollapseVerdict::healthy);
  EXPECT_TRUE(report.findings.empty());
}

TEST(Collapse, IsNotSeenInTheSkewOfRealText) {
  for (const double sigma : {0.3, 0.6, 1.0}) {
    const auto weights = log_normal_weights(64, sigma, 7);
    const auto report = find_collapse(run_of(40, 512, 8, [&](std::size_t) { return weights; }), 8);
    EXPECT_EQ(report.verdict, CollapseVerdict::healthy) << sigma;
  }
}

TEST(Collapse, IsUnknownFromTooFewTokens) {
  // 8 tokens of top-1 over 64 experts cannot reach them all: q is 1/8.
  const auto few = run_of(100, 8, 1, [](std::size_t) { return even(64); });
  EXPECT_EQ(find_collapse(few, 1).verdict, CollapseVerdict::unknown);
  const auto more = run_of(600, 8, 1, [](std::size_t) { return even(64); });
  EXPECT_EQ(find_collapse(more, 1).verdict, CollapseVerdict::healthy);
  EXPECT_EQ(find_collapse({}, 1).verdict, CollapseVerdict::unknown);
}

TEST(Collapse, OfDeadExpertsHasTheirFirstStep) {
  const auto steps = run_of(60, 256, 2, [](std::size_t step) {
    Weights weights = even(16);
    if (step >= 21) weights[3] = weights[8] = 0.0;
    return weights;
  });
  const auto report = find_collapse(steps, 2);
  expect_only(report, CollapseKind::dead_experts, 21, 22);
  EXPECT_EQ(report.findings.size(), 1u);
}

TEST(Collapse, IsNotWhatExpertsInTurnDoWithoutTokens) {
  const auto steps = run_of(60, 256, 2, [](std::size_t step) {
    Weights weights = even(16);
    weights[step % 16] = weights[(step + 8) % 16] = 0.0;
    return weights;
  });
  EXPECT_FALSE(find_collapse(steps, 2).find(CollapseKind::dead_experts));
}

TEST(Collapse, ToAMonopolyHasItsFirstStep) {
  const auto steps = run_of(60, 512, 1, [](std::size_t step) {
    Weights weights = even(32);
    if (step >= 31) weights[5] = 100.0;
    return weights;
  });
  expect_only(find_collapse(steps, 1), CollapseKind::monopoly, 31, 33);
}

/// torchtitan#1246: top-1, a batch of 8 tokens, each of 7 layers with all on an expert of its own.
TEST(Collapse, OfEveryLayerCountsTheLayers) {
  std::vector<StepRecord> steps;
  for (std::size_t step = 1; step <= 1000; ++step) {
    StepRecord record;
    record.step = step;
    record.tokens = record.distinct_inputs = 8;
    for (const std::size_t expert : {30, 19, 9, 43, 56, 18, 33}) {
      record.loads.emplace_back(64, 0);
      record.loads.back()[expert] = 8;
    }
    steps.push_back(std::move(record));
  }
  const auto report = find_collapse(steps, 1);
  EXPECT_EQ(report.find(CollapseKind::monopoly), (CollapseFinding{CollapseKind::monopoly, 1, 7}));
  EXPECT_EQ(report.find(CollapseKind::dead_experts)->layers, 7u);
}

TEST(Collapse, IntoOscillationIsSeenAtPeriodsOfTwoAndFour) {
  for (const std::size_t period : {2u, 4u}) {
    const auto steps = run_of(60, 1024, 2, [&](std::size_t step) {
      Weights weights = even(16);
      const bool first_half = step % period < period / 2;
      for (std::size_t j = 0; j < 16; ++j) weights[j] = (j < 8) == first_half ? 1.0 : 0.1;
      return step <= 24 ? even(16) : weights;
    });
    expect_only(find_collapse(steps, 2), CollapseKind::oscillation, 17, 33);
  }
}

TEST(Collapse, IntoOscillationIsNotSeenInASteadyOrSlowlyMovingSkew) {
  const auto weights = log_normal_weights(16, 1.0, 3);
  const auto steady = run_of(60, 1024, 2, [&](std::size_t) { return weights; });
  EXPECT_FALSE(find_collapse(steady, 2).find(CollapseKind::oscillation));
  const auto moving = run_of(60, 1024, 2, [&](std::size_t step) {
    Weights w = even(16);
    for (std::size_t j = 0; j < 16; ++j) w[j] = j == step / 15 ? 5.0 : 1.0;
    return w;
  });
  EXPECT_FALSE(find_collapse(moving, 2).find(CollapseKind::oscillation));
}

TEST(Collapse, ByDriftIsARiseInAllParts) {
  const auto rising = run_of(100, 512, 2, [](std::size_t step) {
    Weights weights = even(16);
    weights[4] = 1.0 + static_cast<double>(step) / 20.0;
    return weights;
  });
  expect_only(find_collapse(rising, 2), CollapseKind::drift, 30, 70);
  const auto jump = run_of(100, 512, 2, [](std::size_t step) {
    Weights weights = even(16);
    weights[4] = step > 50 ? 4.0 : 1.0;
    return weights;
  });
  EXPECT_FALSE(find_collapse(jump, 2).find(CollapseKind::drift));
}

TEST(Collapse, ByDivergenceIsOfTheLossOrTheBiases) {
  auto steps = run_of(40, 256, 2, [](std::size_t) { return even(16); });
  for (StepRecord& step : steps) step.figures = {{"loss", 3.0}, {"bias_range", 0.5}};
  EXPECT_EQ(find_collapse(steps, 2).verdict, CollapseVerdict::healthy);
  for (std::size_t i = 20; i < 40; ++i)
    steps[i].figures["bias_range"] = std::pow(2.0, double(i) - 20);
  EXPECT_EQ(find_collapse(steps, 2).find(CollapseKind::divergence)->onset, 25u);
  steps[10].figures["loss"] = std::nan("");
  EXPECT_EQ(find_collapse(steps, 2).find(CollapseKind::divergence)->onset, 11u);
}

/// minimind#858: loads of 0.241 to 0.263 of 4 experts, and a gradient norm of 7e-10 where 1e-2 is
/// usual.
TEST(Collapse, CanBeBlindWithEvenLoads) {
  auto steps = run_of(40, 512, 1, [](std::size_t) { return even(4); });
  for (StepRecord& step : steps) step.figures = {{"router_gradient", step.step > 10 ? 7e-8 : 1e-2}};
  EXPECT_EQ(find_collapse(steps, 1).find(CollapseKind::blind)->onset, 11u);
  for (StepRecord& step : steps) step.figures = {{"router_gradient", 1e-2}};
  EXPECT_TRUE(find_collapse(steps, 1).findings.empty());
}

/// prime-rl#2368: identical tokens choose the same k experts. That is the data's doing.
TEST(Collapse, IsNotWhatIdenticalTokensDo) {
  auto steps = run_of(40, 512, 2, [](std::size_t) {
    Weights weights(16, 0.0);
    weights[2] = weights[9] = 1.0;
    return weights;
  });
  for (StepRecord& step : steps) step.distinct_inputs = 1;
  const auto report = find_collapse(steps, 2);
  EXPECT_EQ(report.verdict, CollapseVerdict::input_degenerate);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0], (CollapseFinding{CollapseKind::input_degenerate, 1, 1}));
}

TEST(NoiseViolation, IsSeldomExceededByChanceAndNotFarAboveIt) {
  for (const auto& [experts, q] : {std::pair(16, 4), std::pair(16, 100), std::pair(128, 16)}) {
    const auto e = static_cast<std::size_t>(experts);
    const double bound = noise_violation(q, e);
    double largest = 0.0;
    std::size_t above = 0;
    for (std::uint64_t trial = 0; trial < 400; ++trial) {
      const auto loads =
          draw_loads(even(e), static_cast<std::size_t>(q) * e, 1, Stream(8).child(trial));
      const double violation = static_cast<double>(*std::ranges::max_element(loads)) / q - 1.0;
      largest = std::max(largest, violation);
      above += violation > bound ? 1 : 0;
    }
    EXPECT_LE(above, 3u) << e << " " << q;
    EXPECT_LT(bound, 2.0 * largest) << e << " " << q;
  }
  EXPECT_NEAR(noise_violation(1e6, 100), std::sqrt(2 * std::log(1e5) / 1e6), 1e-4);
}

}  // namespace
}  // namespace ballast::sim
