#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "sim/scenario/words.h"
#include "sim/simulation/simulation.h"
#include "sim/threads/thread_pool.h"
#include "tests/sim/support/small_scenario.h"

/// Every balancer, loss and capacity in real training.
namespace ballast::sim {
namespace {

using test::simulated;
using test::small_scenario;

struct Case {
  std::string name;
  std::function<void(Scenario&)> apply;
};

Case of_kind(BalancerKind kind) {
  return {std::string(word(kind)), [kind](Scenario& s) { s.balancer.kind = kind; }};
}

/// Those whose result does not depend on how a step is split.
std::vector<Case> pooled_cases() {
  return {of_kind(BalancerKind::sign),
          of_kind(BalancerKind::smebu),
          of_kind(BalancerKind::threshold),
          {"rms sign, centred",
           [](Scenario& s) {
             s.balancer.kind = BalancerKind::sign;
             s.balancer.sign.step = SignStep::rms;
             s.balancer.sign.centred = true;
           }},
          {"sign in groups",
           [](Scenario& s) {
             s.balancer.kind = BalancerKind::sign;
             s.model.moe.router.groups = {.count = 3, .chosen = 2, .score = GroupScore::top_share};
           }},
          {"sign with the sequence loss of DeepSeek-V3",
           [](Scenario& s) {
             s.balancer.kind = BalancerKind::sign;
             s.model.moe.losses = {.aux = AuxFormula::megatron, .aux_coefficient = 1e-4, .aux_scope = AuxScope::sequence};
           }},
          {"quantile with z-loss", [](Scenario& s) { s.model.moe.losses.z_coefficient = 1e-3; }},
          {"quantiles of sequences", [](Scenario& s) {
             s.balancer.quantile.estimator = QuantileEstimatorKind::sequence_mean;
           }},
          {"stale quantiles", [](Scenario& s) { s.balancer.quantile.stale_updates = 2; }}};
}

/// Those that look at micro-batches, or at the order of forwards.
std::vector<Case> other_cases() {
  const auto capacity = [](DropPolicy policy) {
    return [policy](Scenario& s) {
      s.balancer.kind = BalancerKind::sign;
      s.balancer.sign.loads.counted = CountedLoads::kept;
      s.model.moe.router.assignment.capacity = {.drop = policy, .factor = 1.0};
    };
  };
  return {of_kind(BalancerKind::none),
          of_kind(BalancerKind::sinkhorn),
          of_kind(BalancerKind::expert_choice),
          of_kind(BalancerKind::optimal),
          {"capacity by weight", capacity(DropPolicy::probs)},
          {"capacity by position", capacity(DropPolicy::position)},
          {"global loss", [](Scenario& s) {
             s.balancer.kind = BalancerKind::none;
             s.model.moe.losses = {.aux = AuxFormula::switch_top_1, .aux_scope = AuxScope::global};
           }}};
}

std::vector<Case> all_cases() {
  auto all = pooled_cases();
  for (auto& each : other_cases()) all.push_back(std::move(each));
  return all;
}

Scenario scenario_of(const Case& each) {
  auto scenario = small_scenario();
  scenario.tokens.padding = 0.3;
  scenario.training.evaluate_every = 5;
  scenario.training.overflow_steps = {4};
  each.apply(scenario);
  return scenario;
}

TEST(BalancersInTraining, NeitherThreadsNorRestartsChangeABit) {
  const ThreadPool pool(3);
  for (const auto& each : all_cases()) {
    SCOPED_TRACE(each.name);
    auto scenario = scenario_of(each);
    const auto digest = simulated(scenario)->digest();
    EXPECT_EQ(simulated(scenario, pool)->digest(), digest);
    scenario.training.checkpoint_every = 2;
    scenario.training.restart_after = {5, 9};
    EXPECT_EQ(simulated(scenario)->digest(), digest);
  }
}

TEST(BalancersInTraining, SplittingTheStepChangesNoBitWhereItIsPooled) {
  for (const auto& each : pooled_cases()) {
    SCOPED_TRACE(each.name);
    auto scenario = scenario_of(each);
    const auto digest = simulated(scenario)->digest();
    scenario.training.ranks = 2;
    scenario.training.micro_batches = 2;
    scenario.training.sequences = 1;
    EXPECT_EQ(simulated(scenario)->digest(), digest);
  }
}

TEST(BalancersInTraining, EachChangesTheRun) {
  const auto plain = simulated(scenario_of({"quantile", [](Scenario&) {}}))->digest();
  for (const auto& each : all_cases()) EXPECT_NE(simulated(scenario_of(each))->digest(), plain) << each.name;
}

double mean_of(const Simulation& run, const std::string& figure) {
  double sum = 0.0;
  for (const auto& record : run.steps()) sum += record.figures.at(figure);
  return sum / static_cast<double>(run.steps().size());
}

TEST(BalancersInTraining, RouterFiguresAreThereWhenTheirCauseIs) {
  auto scenario = small_scenario();
  EXPECT_FALSE(simulated(scenario)->steps().back().figures.contains("drop_rate"));
  scenario.model.moe.losses = {.aux = AuxFormula::megatron, .aux_coefficient = 0.5, .z_coefficient = 0.1};
  scenario.model.moe.router.assignment.capacity = {.drop = DropPolicy::position, .factor = 0.75};
  const auto run = simulated(scenario);
  // At least a quarter is dropped when no expert takes more than three quarters of its share.
  EXPECT_GE(mean_of(*run, "drop_rate"), 0.25);
  EXPECT_LT(mean_of(*run, "drop_rate"), 0.75);
  EXPECT_NEAR(mean_of(*run, "aux_loss"), 0.5, 0.1);
  EXPECT_GT(mean_of(*run, "z_loss"), 0.1);  // the square of at least ln 6, times 0.1, if logits are about 0
}

TEST(BalancersInTraining, TokensWithoutAnExpertAreCounted) {
  auto scenario = small_scenario();
  scenario.model.moe.router.top_k = 1;
  scenario.model.moe.router.assignment.capacity = {.drop = DropPolicy::position, .factor = 0.75};
  const auto dropping = simulated(scenario);
  EXPECT_EQ(mean_of(*dropping, "unserved_tokens"), mean_of(*dropping, "drop_rate")) << "with top-1 they are the same";
  scenario.model.moe.router.top_k = 2;
  const auto two = simulated(scenario);
  EXPECT_LT(mean_of(*two, "unserved_tokens"), mean_of(*two, "drop_rate")) << "who loses one may keep the other";
  scenario.model.moe.router.assignment.capacity = {};
  EXPECT_FALSE(simulated(scenario)->steps().back().figures.contains("unserved_tokens"));
  for (const auto kind : {BalancerKind::expert_choice, BalancerKind::threshold}) {
    scenario.balancer.kind = kind;
    const auto run = simulated(scenario);
    EXPECT_GT(mean_of(*run, "unserved_tokens"), 0.0);
    EXPECT_LT(mean_of(*run, "unserved_tokens"), 0.9);
  }
}

TEST(BalancersInTraining, BatchRulesBalanceEveryMicroBatch) {
  for (const auto kind : {BalancerKind::expert_choice, BalancerKind::optimal}) {
    auto scenario = small_scenario();
    scenario.balancer.kind = kind;
    const auto run = simulated(scenario);
    for (const auto& record : run->steps()) {
      EXPECT_LT(record.figures.at("e_max_violation:max"), 0.1);  // 64 assignments of 6 experts: 11 or 10
    }
  }
}

TEST(BalancersInTraining, TheAuxLossTrainsTheRouterTowardsBalance) {
  auto scenario = small_scenario();
  scenario.balancer.kind = BalancerKind::none;
  scenario.training.steps = 60;
  const auto without = simulated(scenario);
  scenario.model.moe.losses = {.aux = AuxFormula::megatron, .aux_coefficient = 1.0};
  const auto with = simulated(scenario);
  EXPECT_LT(with->steps().back().figures.at("load_cv"), 0.75 * without->steps().back().figures.at("load_cv"));
}

TEST(BalancersInTraining, TheZLossKeepsLogitsSmall) {
  auto scenario = small_scenario();
  scenario.training.steps = 60;
  scenario.model.moe.losses.z_coefficient = 1e-9;
  const auto free = simulated(scenario);
  scenario.model.moe.losses.z_coefficient = 0.1;
  const auto held = simulated(scenario);
  EXPECT_LT(held->steps().back().figures.at("z_loss") / 0.1, 0.8 * free->steps().back().figures.at("z_loss") / 1e-9);
}

// Dynamic activation holds the mean number of experts near k without limiting a token.
TEST(BalancersInTraining, ThresholdsActivateAboutKExpertsOnAverage) {
  auto scenario = small_scenario();
  scenario.balancer.kind = BalancerKind::threshold;
  scenario.training.steps = 60;
  scenario.training.sequences = 16;
  const auto run = simulated(scenario);
  const auto& last = run->steps().back();
  for (const auto& layer : last.loads) {
    std::int64_t assignments = 0;
    for (const std::int64_t load : layer) assignments += load;
    EXPECT_NEAR(static_cast<double>(assignments) / static_cast<double>(last.tokens), 2.0, 0.6);
  }
}

}  // namespace
}  // namespace ballast::sim
