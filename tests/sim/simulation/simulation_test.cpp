#include "sim/simulation/simulation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>

#include "sim/output/run_json.h"
#include "sim/threads/thread_pool.h"
#include "tests/sim/support/small_scenario.h"

namespace ballast::sim {
namespace {

using test::simulated;
using test::small_scenario;

std::vector<Loads> loads_of(const Simulation& run) {
  std::vector<Loads> all;
  for (const auto& record : run.steps()) all.push_back(record.loads);
  return all;
}

TEST(Simulation, SameScenarioGivesTheSameDigest) {
  EXPECT_EQ(simulated(small_scenario())->digest(), simulated(small_scenario())->digest());
}

// Pinned: every compiler, optimisation level and processor has to give these bits. A change that moves them
// changes the behavioural signature and has to say so.
TEST(Simulation, DigestIsTheSameEverywhere) {
  auto scenario = small_scenario();
  scenario.training.evaluate_every = 6;
  scenario.training.overflow_steps = {4};
  scenario.tokens.padding = 0.2;
  EXPECT_EQ(simulated(scenario)->digest(), "429f232fe5843f7990fb39401d836107");
  scenario.balancer.quantile.estimator = QuantileEstimatorKind::exact;
  scenario.model.moe.router.score = ScoreFunction::softmax;
  scenario.model.moe.activation = Activation::swiglu;
  EXPECT_EQ(simulated(scenario)->digest(), "9b62691f432fe7de5170206f9109c79a");
}

TEST(Simulation, AnotherSeedGivesAnotherDigest) {
  auto other = small_scenario();
  other.seed = 4;
  EXPECT_NE(simulated(other)->digest(), simulated(small_scenario())->digest());
}

TEST(Simulation, NumberOfThreadsChangesNoBit) {
  const auto digest = simulated(small_scenario())->digest();
  for (const std::size_t threads : {2u, 3u, 8u}) {
    const ThreadPool pool(threads);
    EXPECT_EQ(simulated(small_scenario(), pool)->digest(), digest) << threads;
  }
}

TEST(Simulation, CollectorOnOrOffChangesNoBitOfTheModel) {
  auto off = small_scenario();
  off.diagnostics = false;
  const auto without = simulated(off), with = simulated(small_scenario());
  EXPECT_EQ(without->digest(), with->digest());
  EXPECT_TRUE(without->windows().empty());
  EXPECT_EQ(with->windows().size(), 3u);
}

TEST(Simulation, EvaluationChangesNoBitOfTheTraining) {
  auto scenario = small_scenario();
  scenario.training.evaluate_every = 3;
  const auto with = simulated(scenario), without = simulated(small_scenario());
  ASSERT_EQ(with->evaluations().size(), 5u);  // before the first step and after 3, 6, 9, 12
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(with->steps()[i].digest, without->steps()[i].digest);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(with->windows()[i].snapshot, without->windows()[i].snapshot);
  }
}

struct Split {
  std::size_t ranks, micro_batches, sequences;
};

TEST(Simulation, SplittingTheSameTokensChangesNoBit) {
  for (const auto estimator : {QuantileEstimatorKind::exact, QuantileEstimatorKind::histogram}) {
    auto scenario = small_scenario();
    scenario.balancer.quantile.estimator = estimator;
    scenario.tokens.padding = 0.3;
    const auto whole = simulated(scenario);
    for (const Split split : {Split{1, 4, 1}, {4, 1, 1}, {2, 2, 1}, {2, 1, 2}, {1, 2, 2}}) {
      scenario.training.ranks = split.ranks;
      scenario.training.micro_batches = split.micro_batches;
      scenario.training.sequences = split.sequences;
      const auto other = simulated(scenario);
      EXPECT_EQ(other->digest(), whole->digest());
      EXPECT_EQ(loads_of(*other), loads_of(*whole));
    }
  }
}

TEST(Simulation, RestartAfterAnyStepIsAsIfNothingHadHappened) {
  auto scenario = small_scenario();
  scenario.training.checkpoint_every = 3;
  scenario.training.evaluate_every = 5;
  scenario.training.overflow_steps = {6};
  for (const auto policy : {SkippedStep::keep, SkippedStep::discard}) {
    scenario.balancer.quantile.on_skipped_step = policy;
    scenario.training.restart_after = {};
    const auto unbroken = simulated(scenario);
    for (std::size_t step = 1; step <= scenario.training.steps; ++step) {
      scenario.training.restart_after = {step};
      const auto restarted = simulated(scenario);
      EXPECT_EQ(restarted->digest(), unbroken->digest()) << "restart after step " << step;
      EXPECT_EQ(metrics_lines(*restarted), metrics_lines(*unbroken));
      EXPECT_EQ(evaluation_lines(*restarted), evaluation_lines(*unbroken));
      ASSERT_EQ(restarted->windows().size(), unbroken->windows().size());
      for (std::size_t i = 0; i < unbroken->windows().size(); ++i) {
        const auto& window = restarted->windows()[i];
        EXPECT_EQ(window.last_step, unbroken->windows()[i].last_step);
        if (window.complete) {
          EXPECT_EQ(window.snapshot, unbroken->windows()[i].snapshot);
        }
      }
    }
  }
}

TEST(Simulation, WindowThatARestartBrokeSaysThatCountsAreMissing) {
  auto scenario = small_scenario();  // windows of 4 steps
  scenario.training.checkpoint_every = 3;
  scenario.training.restart_after = {7};  // goes on from step 6: 5 and 6 of the window 5-8 are lost
  const auto run = simulated(scenario);
  ASSERT_EQ(run->windows().size(), 3u);
  EXPECT_TRUE(run->windows()[0].complete);
  EXPECT_FALSE(run->windows()[1].complete);
  EXPECT_TRUE(run->windows()[2].complete);
  EXPECT_EQ(run->windows()[1].snapshot.layers[0].second.tokens, 2 * 4 * 8);
}

TEST(Simulation, RestartWithoutCheckpointBeginsAnew) {
  auto scenario = small_scenario();
  scenario.training.restart_after = {5, 9};
  EXPECT_EQ(simulated(scenario)->digest(), simulated(small_scenario())->digest());
}

TEST(Simulation, WindowCountsAreTheSumsOfTheStepsLoads) {
  auto scenario = small_scenario();
  scenario.training.log_every = 5;  // 5, 10, and the rest: 12
  scenario.tokens.padding = 0.4;
  scenario.training.overflow_steps = {2, 7};
  const auto run = simulated(scenario);
  ASSERT_EQ(run->windows().size(), 3u);
  for (const auto& window : run->windows()) {
    for (std::size_t layer = 0; layer < 2; ++layer) {
      std::vector<std::int64_t> sum(6, 0);
      for (std::size_t step = window.first_step; step <= window.last_step; ++step) {
        for (std::size_t j = 0; j < 6; ++j) sum[j] += run->steps()[step - 1].loads[layer][j];
      }
      EXPECT_EQ(window.snapshot.layers[layer].second.expert_load_counts, sum);
    }
  }
  EXPECT_EQ(run->windows()[2].first_step, 11u);
  EXPECT_EQ(run->windows()[2].last_step, 12u);
}

TEST(Simulation, EveryValidTokenMakesKAssignmentsInEveryLayer) {
  auto scenario = small_scenario();
  scenario.tokens.padding = 0.5;
  const auto run = simulated(scenario);
  std::int64_t padded = 0;
  for (const auto& record : run->steps()) {
    padded += 4 * 8 - record.tokens;
    for (const auto& layer : record.loads) {
      EXPECT_EQ(std::accumulate(layer.begin(), layer.end(), std::int64_t{0}), record.tokens * 2);
    }
  }
  EXPECT_GT(padded, 0);
}

TEST(Simulation, OverflowSkipsTheUpdateAndHalvesTheLossScale) {
  auto scenario = small_scenario();
  scenario.training.overflow_steps = {3, 4};
  scenario.training.loss_scale.growth_interval = 5;
  const auto run = simulated(scenario);
  std::vector<double> scales;
  for (const auto& record : run->steps()) {
    scales.push_back(record.loss_scale);
    EXPECT_EQ(record.applied, record.step != 3 && record.step != 4);
  }
  const double full = scenario.training.loss_scale.initial;
  EXPECT_EQ(scales, (std::vector<double>{full, full, full, full / 2, full / 4, full / 4, full / 4, full / 4, full / 4,
                                         full / 2, full / 2, full / 2}));
  ASSERT_EQ(run->events().size(), 2u);
  EXPECT_EQ(run->events()[0].step, 3u);
}

TEST(Simulation, LossScaleDoesNotChangeTheUpdate) {
  auto scenario = small_scenario();
  const auto run = simulated(scenario);
  scenario.training.loss_scale.initial = 1.0;
  const auto unscaled = simulated(scenario);
  EXPECT_EQ(loads_of(*run), loads_of(*unscaled));
  EXPECT_EQ(run->steps().back().figures.at("loss"), unscaled->steps().back().figures.at("loss"));
}

TEST(Simulation, FirstLossIsThatOfGuessingAndTheLastIsBelow) {
  auto scenario = small_scenario();
  scenario.training.steps = 60;
  const auto run = simulated(scenario);
  EXPECT_NEAR(run->steps().front().figures.at("loss"), std::log(23.0), 1.0);
  EXPECT_LT(run->steps().back().figures.at("loss"), run->steps().front().figures.at("loss") - 0.5);
}

}  // namespace
}  // namespace ballast::sim
