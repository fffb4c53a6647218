#include "sim/router_only/router_only.h"

#include <gtest/gtest.h>

#include <numeric>

#include "sim/threads/thread_pool.h"
#include "tests/sim/support/small_scenario.h"

namespace ballast::sim {
namespace {

using test::simulated;

Scenario routers() {
  Scenario scenario;
  scenario.mode = Mode::router_only;
  scenario.model.layers = 3;
  scenario.model.moe.router.routed_experts = 16;
  scenario.model.moe.router.top_k = 2;
  scenario.scores = {.sigma = 1.0, .token_driven = 0.3};
  scenario.tokens.sequence_length = 32;
  scenario.tokens.padding = 0.2;
  scenario.training.steps = 8;
  scenario.training.micro_batches = 2;
  scenario.training.sequences = 4;
  scenario.training.log_every = 4;
  return scenario;
}

TEST(RoutersAlone, SendEveryValidTokenToKExpertsInEveryLayer) {
  const auto run = simulated(routers());
  for (const StepRecord& step : run->steps()) {
    ASSERT_EQ(step.loads.size(), 3u);
    EXPECT_GT(step.tokens, 0);
    EXPECT_LT(step.tokens, 256) << "some tokens are padding";
    for (const auto& layer : step.loads) {
      EXPECT_EQ(std::accumulate(layer.begin(), layer.end(), std::int64_t{0}), 2 * step.tokens);
    }
    EXPECT_FALSE(step.figures.contains("loss"));
  }
}

TEST(RoutersAlone, AreCountedByTheCollector) {
  const auto run = simulated(routers());
  ASSERT_EQ(run->windows().size(), 2u);
  const auto& layers = run->windows()[0].snapshot.layers;
  ASSERT_EQ(layers.size(), 3u);
  EXPECT_EQ(layers[1].first, "layers.1.router");
  std::vector<std::int64_t> sum(16, 0);
  for (std::size_t step = 0; step < 4; ++step) {
    for (std::size_t j = 0; j < 16; ++j) sum[j] += run->steps()[step].loads[1][j];
  }
  EXPECT_EQ(layers[1].second.expert_load_counts, sum);
}

TEST(RoutersAlone, ComeOutTheSameOnAnyNumberOfThreadsAndWithoutTheCollector) {
  Scenario scenario = routers();
  const std::string digest = simulated(scenario)->digest();
  EXPECT_EQ(simulated(scenario, ThreadPool(3))->digest(), digest);
  scenario.diagnostics = false;
  EXPECT_EQ(simulated(scenario)->digest(), digest);
  scenario.seed = 2;
  EXPECT_NE(simulated(scenario)->digest(), digest);
}

TEST(RoutersAlone, DoNotDependOnHowAStepIsSplitUnderAPooledEstimate) {
  Scenario scenario = routers();
  scenario.balancer.quantile.estimator = QuantileEstimatorKind::histogram;
  const std::string digest = simulated(scenario)->digest();
  scenario.training.micro_batches = 8;
  scenario.training.sequences = 1;
  EXPECT_EQ(simulated(scenario)->digest(), digest);
}

TEST(RoutersAlone, GoOnFromACheckpointAsIfNothingHadHappened) {
  Scenario scenario = routers();
  const std::string digest = simulated(scenario)->digest();
  scenario.training.checkpoint_every = 3;
  scenario.training.restart_after = {5, 7};
  const auto run = simulated(scenario);
  EXPECT_EQ(run->digest(), digest);
  EXPECT_EQ(run->events().size(), 2u);
}

TEST(RoutersAlone, LearnNothingFromAnEvaluation) {
  Scenario scenario = routers();
  const auto loads = [](const Simulation& run) { return run.steps().back().loads; };
  const auto plain = simulated(scenario);
  scenario.training.evaluate_every = 2;
  const auto evaluated = simulated(scenario);
  EXPECT_EQ(loads(*evaluated), loads(*plain));
  EXPECT_EQ(evaluated->evaluations().size(), 5u);
  scenario.fault = BalancerFault::evaluation_leak;
  EXPECT_NE(loads(*simulated(scenario)), loads(*plain));
}

TEST(RoutersAlone, AreBalancedByQuantiles) {
  Scenario scenario = routers();
  scenario.training.sequences = 64;
  const auto max_violation = [](const Simulation& run) {
    return run.steps().back().figures.at("e_max_violation:mean");
  };
  EXPECT_LT(max_violation(*simulated(scenario)), 0.6);
  scenario.balancer.kind = BalancerKind::none;
  EXPECT_GT(max_violation(*simulated(scenario)), 1.0);
}

TEST(RoutersAlone, FollowTheScheduleOfTheirScores) {
  Scenario scenario = routers();
  scenario.balancer.kind = BalancerKind::none;
  scenario.schedule = {{.from = 5, .over = 0, .set = {{"scores.hot_share", "0.9"}}}};
  const auto run = simulated(scenario);
  const auto largest_share = [&](std::size_t step) {
    const StepRecord& record = run->steps()[step - 1];
    const auto& loads = record.loads[0];
    return static_cast<double>(*std::max_element(loads.begin(), loads.end())) /
           static_cast<double>(record.tokens);
  };
  EXPECT_LT(largest_share(4), 0.75);
  EXPECT_GT(largest_share(5), 0.8);
}

TEST(RoutersAlone, CanSkipAStepOnOverflow) {
  Scenario scenario = routers();
  scenario.training.overflow_steps = {3};
  const auto run = simulated(scenario);
  EXPECT_FALSE(run->steps()[2].applied);
  EXPECT_TRUE(run->steps()[3].applied);
}

}  // namespace
}  // namespace ballast::sim
