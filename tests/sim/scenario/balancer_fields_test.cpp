#include <gtest/gtest.h>

#include "sim/input_error.h"
#include "sim/scenario/scenario_file.h"
#include "sim/scenario/words.h"
#include "sim/trainer/make_balancer.h"

namespace ballast::sim {
namespace {

Scenario scenario_with(const std::vector<std::string>& assignments, const std::string& text = R"({"ballast": 1})") {
  std::vector<Override> overrides;
  for (const auto& assignment : assignments) overrides.push_back(parse_override(assignment).value());
  return parse_scenario(text, "x.json", overrides).common;
}

std::string error_with(const std::vector<std::string>& assignments, const std::string& text = R"({"ballast": 1})") {
  try {
    scenario_with(assignments, text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(BalancerFields, EveryKindIsMadeFromItsWordAlone) {
  for (const auto kind : words_of<BalancerKind>) {
    const auto scenario = scenario_with({"balancer.kind=" + std::string(kind)});
    EXPECT_EQ(word(scenario.balancer.kind), kind);
    const auto balancer = make_balancer(scenario.model.moe.router, scenario.balancer);
    EXPECT_EQ(balancer->biases().size(), scenario.model.moe.router.routed_experts) << kind;
  }
}

TEST(BalancerFields, CommonFieldsReachTheKindInForce) {
  const std::vector<std::string> common = {"balancer.update=forward", "balancer.on_skipped_step=keep"};
  const auto s = scenario_with(common);
  for (const LoadBiasSettings& loads : {s.balancer.sign.loads, s.balancer.smebu.loads}) {
    EXPECT_EQ(loads.update, UpdateCadence::forward);
    EXPECT_EQ(loads.on_skipped_step, SkippedStep::keep);
  }
  EXPECT_EQ(s.balancer.quantile.update, UpdateCadence::forward);
  EXPECT_EQ(s.balancer.quantile.on_skipped_step, SkippedStep::keep);
}

TEST(BalancerFields, AnOverriddenKindDropsWhatTheFileSaysOfAnother) {
  const std::string file = R"({"ballast": 1, "balancer": {"kind": "quantile", "estimator": "exact", "gain": 2}})";
  const auto s = scenario_with({"balancer.kind=sign", "balancer.rate=0.01"}, file);
  EXPECT_EQ(s.balancer.kind, BalancerKind::sign);
  EXPECT_EQ(s.balancer.sign.rate, 0.01);
  EXPECT_EQ(s.balancer.quantile.gain, 1.0);
}

TEST(BalancerFields, AFieldOfAnotherKindIsRefused) {
  const auto error = error_with({"balancer.rate=0.01"});
  EXPECT_TRUE(contains(error, "balancer.rate") && contains(error, "\"sign\"")) << error;
  EXPECT_TRUE(contains(error_with({"balancer.kind=sign", "balancer.gain=2"}), "\"quantile\""));
}

TEST(BalancerFields, GroupsThatDoNotFitAreRefusedWithTheReason) {
  const auto error =
      error_with({"balancer.kind=sign", "model.routed_experts=32", "model.groups.count=5"});
  EXPECT_TRUE(contains(error, "32 experts do not make 5 groups of one size")) << error;
  EXPECT_EQ(error_with({"balancer.kind=sign", "model.routed_experts=32", "model.groups.count=8",
                        "model.groups.chosen=4", "model.top_k=8"}),
            "accepted");
}

TEST(BalancerFields, QuantilesOfGroupLimitedChoicesAreRefused) {
  const auto error = error_with({"model.routed_experts=32", "model.groups.count=8"});
  EXPECT_TRUE(contains(error, "quantile balancing needs the one score")) << error;
}

TEST(BalancerFields, RulesOfAssignmentRefuseWhatCannotBeWithThem) {
  for (const std::string kind : {"sinkhorn", "expert_choice", "threshold", "optimal"}) {
    const auto error = error_with({"balancer.kind=" + kind, "model.groups.count=2"});
    EXPECT_TRUE(contains(error, "groups limit how a token chooses")) << kind << ": " << error;
  }
  for (const std::string kind : {"expert_choice", "optimal"}) {
    const auto error = error_with({"balancer.kind=" + kind, "balancer.drop=probs"});
    EXPECT_TRUE(contains(error, "gives all experts the same load")) << kind << ": " << error;
  }
  for (const std::string kind : {"sinkhorn", "expert_choice", "optimal"}) {
    const auto error = error_with({"balancer.kind=" + kind, "balancer.aux_loss=megatron"});
    EXPECT_TRUE(contains(error, "balances every batch itself")) << kind << ": " << error;
  }
  EXPECT_TRUE(contains(error_with({"balancer.kind=threshold", "model.routed_experts=4", "model.top_k=4"}),
                       "needs an expert that is not chosen"));
}

TEST(BalancerFields, CountsInBf16NeedABalancerThatCounts) {
  EXPECT_TRUE(contains(error_with({"fault=bf16_counts"}), "\"quantile\" counts no loads"));
  EXPECT_EQ(error_with({"fault=bf16_counts", "balancer.kind=sign"}), "accepted");
  EXPECT_EQ(error_with({"fault=bf16_counts", "balancer.kind=smebu"}), "accepted");
}

TEST(BalancerFields, CombinationsOfPapersAreAccepted) {
  EXPECT_EQ(error_with({"balancer.kind=sign", "balancer.aux_loss=megatron", "balancer.aux_scope=sequence",
                        "balancer.aux_coefficient=0.0001"}),
            "accepted");
  EXPECT_EQ(error_with({"balancer.z_loss=0.001"}), "accepted");
  EXPECT_EQ(error_with({"balancer.kind=sign", "balancer.drop=probs", "balancer.counted=kept"}), "accepted");
  EXPECT_EQ(error_with({"balancer.drop=position", "balancer.capacity_factor=1"}), "accepted");
}

TEST(BalancerFields, LossesAndCapacitiesReachTheModel) {
  const auto s = scenario_with({"balancer.kind=sign", "balancer.aux_loss=switch_top_1", "balancer.aux_coefficient=0.5",
                                "balancer.aux_scope=global", "balancer.z_loss=0.25", "balancer.drop=position",
                                "balancer.capacity_factor=2"});
  const auto settings = model_settings(s);
  EXPECT_EQ(settings.moe.losses.aux, AuxFormula::switch_top_1);
  EXPECT_EQ(settings.moe.losses.aux_coefficient, 0.5);
  EXPECT_EQ(settings.moe.losses.aux_scope, AuxScope::global);
  EXPECT_EQ(settings.moe.losses.z_coefficient, 0.25);
  EXPECT_EQ(settings.moe.router.assignment.capacity.drop, DropPolicy::position);
  EXPECT_EQ(settings.moe.router.assignment.capacity.factor, 2.0);
  EXPECT_EQ(settings.moe.router.assignment.rule, AssignmentRule::top_k);
  EXPECT_EQ(model_settings(scenario_with({"balancer.kind=optimal"})).moe.router.assignment.rule,
            AssignmentRule::optimal);
}

TEST(BalancerFields, ExpectationsOfWhatTheRunDoesNotMeasureAreRefused) {
  for (const std::string metric : {"drop_rate", "unserved_tokens", "aux_loss", "z_loss"}) {
    const std::string file = R"({"ballast": 1, "expect": [{"metric": ")" + metric + R"(", "at_most": 1}]})";
    EXPECT_TRUE(contains(error_with({}, file), "the run has no " + metric)) << metric;
    const std::vector<std::string> all_on = {"balancer.drop=probs", "balancer.aux_loss=gshard", "balancer.z_loss=1"};
    EXPECT_EQ(error_with(all_on, file), "accepted");
    std::vector<std::string> routers_alone = all_on;
    routers_alone.push_back("mode=router_only");
    EXPECT_TRUE(contains(error_with(routers_alone, file), "routers alone have no " + metric)) << metric;
  }
}

}  // namespace
}  // namespace ballast::sim
