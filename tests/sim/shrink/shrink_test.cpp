#include "sim/shrink/shrink.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/scenario/contradictions.h"
#include "sim/scenario/fields.h"
#include "sim/scenario/scenario_file.h"
#include "sim/scenario/work.h"
#include "sim/shrink/reductions.h"
#include "tests/sim/support/small_scenario.h"
#include "tests/support/paths.h"

namespace ballast::sim {
namespace {

const auto silent = [](const Attempt&) {};

Expectation at_most(const std::string& metric, double bound) {
  return {.metric = metric, .aggregate = Aggregate::last, .at_most = bound};
}

Scenario failing() {
  Scenario scenario = test::small_scenario();
  scenario.training.restart_after = {5};
  scenario.training.overflow_steps = {2, 7};
  scenario.tokens.padding = 0.25;
  scenario.expect = {at_most("loss", 100.0), at_most("loss", 1.0), at_most("dead_experts", -1.0)};
  return scenario;
}

Aim aim_of(const Scenario& scenario, Keep keep) {
  return *aim_at(*test::simulated(scenario), keep);
}

TEST(Shrink, KeepsTheFirstExpectationThatFailsAndItsReason) {
  const Aim aim = aim_of(failing(), Keep::fail);
  ASSERT_EQ(aim.scenario.expect.size(), 1u);
  EXPECT_EQ(aim.scenario.expect[0].at_most, 1.0);
  EXPECT_EQ(aim.target.shortfall, Shortfall::above);
}

TEST(Shrink, AScenarioThatDoesNotShowItHasNoAim) {
  Scenario scenario = test::small_scenario();
  scenario.expect = {at_most("loss", 100.0)};
  EXPECT_FALSE(aim_at(*test::simulated(scenario), Keep::fail));
  EXPECT_TRUE(aim_at(*test::simulated(scenario), Keep::pass));
  scenario.expect.push_back(at_most("loss", 0.0));
  EXPECT_FALSE(aim_at(*test::simulated(scenario), Keep::pass));
  scenario.expect.clear();
  EXPECT_FALSE(aim_at(*test::simulated(scenario), Keep::pass));
}

TEST(Shrink, TheSmallestScenarioFailsTheSameWayWithoutWhatDoesNotMatter) {
  const Aim aim = aim_of(failing(), Keep::fail);
  const Shrunk shrunk = shrink(aim, 300, 1, silent);
  EXPECT_TRUE(shrunk.complete);
  EXPECT_TRUE(shows(*test::simulated(shrunk.scenario), aim.target));
  const Scenario& s = shrunk.scenario;
  EXPECT_EQ(s.training.steps, 1u);
  EXPECT_EQ(s.model.layers, 1u);
  EXPECT_EQ(s.model.moe.router.hidden, 4u);
  EXPECT_EQ(s.model.moe.shared_experts, 0u);
  EXPECT_EQ(s.tokens.padding, 0.0);
  EXPECT_TRUE(s.training.restart_after.empty());
  EXPECT_TRUE(s.training.overflow_steps.empty());
  EXPECT_FALSE(contradiction_in(s));
}

TEST(Shrink, IsReadBackFromItsFileAsItWas) {
  const Shrunk shrunk = shrink(aim_of(failing(), Keep::fail), 300, 1, silent);
  const Json json = to_json(shrunk.scenario);
  EXPECT_EQ(to_json(parse_scenario(json.dump(), "small.json").common), json);
}

TEST(Shrink, TriesTheSameOnAnyNumberOfThreads) {
  const Aim aim = aim_of(failing(), Keep::fail);
  const Shrunk one = shrink(aim, 40, 1, silent), two = shrink(aim, 40, 2, silent);
  ASSERT_EQ(one.attempts.size(), two.attempts.size());
  for (std::size_t i = 0; i < one.attempts.size(); ++i) {
    EXPECT_EQ(one.attempts[i].path, two.attempts[i].path);
    EXPECT_EQ(one.attempts[i].to, two.attempts[i].to);
    EXPECT_EQ(one.attempts[i].kept, two.attempts[i].kept);
  }
  EXPECT_EQ(to_json(one.scenario), to_json(two.scenario));
}

TEST(Shrink, StopsAtItsBudget) {
  std::size_t told = 0;
  const Shrunk shrunk =
      shrink(aim_of(failing(), Keep::fail), 7, 1, [&](const Attempt&) { ++told; });
  EXPECT_EQ(shrunk.attempts.size(), 7u);
  EXPECT_EQ(told, 7u);
  EXPECT_FALSE(shrunk.complete);
  EXPECT_TRUE(shows(*test::simulated(shrunk.scenario), {Keep::fail, Shortfall::above}));
}

/// A value on the other side of its bounds is another failure.
TEST(Shrink, AFailureForAnotherReasonIsNotKept) {
  Scenario scenario = test::small_scenario();
  // Six experts and two choices: at most 2; a single layer of two experts has 0 always.
  scenario.expect = {{.metric = "e_max_violation:mean",
                      .aggregate = Aggregate::last,
                      .at_most = 0.01,
                      .at_least = 0.005}};
  const Aim aim = aim_of(scenario, Keep::fail);
  ASSERT_EQ(aim.target.shortfall, Shortfall::above);
  const Shrunk shrunk = shrink(aim, 200, 1, silent);
  const auto outcome = judge(*test::simulated(shrunk.scenario)).front();
  EXPECT_GT(*outcome.value, 0.01);
}

TEST(Reductions, FewerStepsTakeEverythingSaidInStepsAlong) {
  Scenario scenario = failing();
  scenario.training.steps = 100;
  scenario.training.overflow_steps = {10, 11, 90};
  scenario.training.restart_after = {50};
  scenario.training.checkpoint_every = 20;
  scenario.expect = {{.metric = "loss", .from = 81, .until = 90, .at_most = 1.0},
                     {.metric = "loss", .from = 2, .at_most = 1.0}};
  const Scenario shorter = with_size(scenario, {"training.steps"}, 10);
  EXPECT_EQ(shorter.training.overflow_steps, (std::vector<std::size_t>{1, 2, 9}));
  EXPECT_EQ(shorter.training.restart_after, (std::vector<std::size_t>{5}));
  EXPECT_EQ(shorter.training.checkpoint_every, 2u);
  EXPECT_EQ(shorter.expect[0].from, 9u);
  EXPECT_EQ(shorter.expect[0].until, 9u);
  EXPECT_EQ(shorter.expect[1].from, 2u) << "it leaves out the first step as before";
}

TEST(Reductions, EverySizeIsAFieldOfTheRegistry) {
  Scenario scenario = test::small_scenario();
  EXPECT_GE(size_fields(scenario).size(), 15u);
  for (const SizeField& size : size_fields(scenario)) {
    ASSERT_NE(find_field(scenario_fields(), size.path), nullptr) << size.path;
    EXPECT_EQ(size_of(with_size(scenario, size, 4), size), 4u) << size.path;
  }
}

TEST(Reductions, SizesThatMeanNothingBesideOtherFieldsAreLeftAlone) {
  Scenario scenario = test::small_scenario();
  scenario.tokens.source = TokenSourceKind::constant;
  for (const SizeField& size : size_fields(scenario)) EXPECT_NE(size.path, "tokens.topics");
}

TEST(Reductions, FieldsWithoutEffectAreNotTried) {
  Scenario scenario = test::small_scenario();
  scenario.balancer.kind = BalancerKind::none;
  scenario.balancer.quantile.gain = 0.5;
  scenario.tokens.burst_length = 5;
  const auto is_tried = [&](const std::string& path) {
    const auto sizes = size_fields(scenario);
    const auto simpler = simplifications(scenario);
    return std::ranges::find(sizes, path, &SizeField::path) != sizes.end() ||
           std::ranges::find(simpler, path, &Simplification::path) != simpler.end();
  };
  for (const char* path :
       {"balancer.bins", "balancer.gain", "tokens.burst_length", "training.evaluate_sequences"}) {
    EXPECT_FALSE(is_tried(path)) << path;
  }
  scenario.balancer.kind = BalancerKind::quantile;
  scenario.tokens.burst_share = 0.5;
  scenario.training.evaluate_every = 4;
  for (const char* path :
       {"balancer.bins", "balancer.gain", "tokens.burst_length", "training.evaluate_sequences"}) {
    EXPECT_TRUE(is_tried(path)) << path;
  }
  scenario.balancer.quantile.estimator = QuantileEstimatorKind::exact;
  EXPECT_FALSE(is_tried("balancer.bins"));
}

/// What is called without effect has none.
TEST(Reductions, ARunWithoutItsIdleFieldsIsTheSame) {
  Scenario busy = test::small_scenario();
  busy.balancer.quantile = {.bins = 77, .gain = 0.5, .stale_updates = 2};
  busy.balancer.quantile.update = UpdateCadence::forward;
  busy.balancer.quantile.on_skipped_step = SkippedStep::keep;
  busy.tokens.burst_length = 5;
  busy.tokens.topic_persistence = 0.3;
  busy.model.moe.shared_inner = 9;
  busy.training.evaluate_sequences = 3;
  busy.training.checkpoint_every = 3;
  busy.training.overflow_steps = {3};
  const auto expect_same = [](const Scenario& scenario, std::size_t changed) {
    const Scenario settled = without_idle_fields(scenario);
    std::size_t fields = 0;
    for (const auto& field : scenario_fields())
      fields += field.get(scenario) != field.get(settled) ? 1 : 0;
    EXPECT_EQ(fields, changed);
    EXPECT_EQ(test::simulated(settled)->digest(), test::simulated(scenario)->digest());
  };
  expect_same(busy, 3);  // burst_length, evaluate_sequences, checkpoint_every
  busy.model.moe.shared_experts = 0;
  busy.tokens.topics = 1;
  busy.balancer.kind = BalancerKind::none;
  expect_same(busy, 10);  // those, shared_inner, topic_persistence, and five of the balancer
  busy.mode = Mode::router_only;
  busy.scores.aligned_expert = 3;
  busy.scores.aligned_by = 2.0;
  busy.scores.shift_weight = 0.5;
  expect_same(busy, 13);
}

/// The collapse of top-1 without balancing, that real training shows, in a fraction of a second.
TEST(Shrink, TheTop1CollapseBecomesARunOfWellUnderASecondThatStillCollapses) {
  Scenario collapse;
  for (const Variant& variant :
       load_scenario(ballast::test::source_dir() + "/scenarios/collapse/collapse-emerges.json")
           .variants) {
    if (variant.name == "none-1") collapse = variant.scenario;
  }
  ASSERT_EQ(collapse.model.moe.router.top_k, 1u);
  const Aim aim = aim_of(collapse, Keep::pass);
  // The first things that are tried save most; 300 take minutes.
  const Shrunk shrunk = shrink(aim, 12, 1, silent);
  EXPECT_TRUE(shows(*test::simulated(shrunk.scenario), aim.target));
  // Its work says how long it runs: that of the whole one, 10^10, takes about a second.
  EXPECT_LT(estimate_work(shrunk.scenario), 0.1 * estimate_work(collapse));
  EXPECT_LT(estimate_work(shrunk.scenario), 1e9);
}

TEST(Reductions, TooFewTokensForTheExpertsAreNoSmallerCase) {
  Scenario scenario = test::small_scenario();  // 32 tokens, 2 of 6 experts
  Scenario fewer = scenario;
  fewer.training.sequences = 3;  // a fair load of 8
  EXPECT_TRUE(is_sound(fewer, scenario));
  fewer.training.sequences = 2;
  EXPECT_FALSE(is_sound(fewer, scenario));
  EXPECT_TRUE(is_sound(fewer, fewer)) << "what the original has is good enough";
  fewer = scenario;
  fewer.model.moe.router.routed_experts = 1;
  EXPECT_FALSE(is_sound(fewer, scenario)) << "top_k is 2";
}

}  // namespace
}  // namespace ballast::sim
