#include "core/model/router.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/arithmetic/functions.h"
#include "core/assignment/chosen_experts.h"
#include "core/random/distributions.h"

namespace ballast {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float inf = std::numeric_limits<float>::infinity();

Routing<float> route(const RouterSettings& settings, const std::vector<float>& logits,
                     std::vector<float> biases = {}) {
  Matrix<float> row(1, logits.size());
  std::ranges::copy(logits, row.row(0).begin());
  if (biases.empty()) biases.assign(logits.size(), 0.0f);
  return Router<float>(settings).route(std::move(row), biases);
}

RouterSettings settings_of(std::size_t experts, std::size_t top_k) {
  return {.hidden = 2, .routed_experts = experts, .top_k = top_k};
}

Matrix<float> drawn_logits(std::size_t tokens, std::size_t experts, std::uint64_t seed) {
  Matrix<float> logits(tokens, experts);
  Stream stream(seed);
  for (float& z : logits.values()) z = static_cast<float>(normal(stream));
  return logits;
}

/// The definition, in the order of its operations.
Routing<float> routed_plainly(const RouterSettings& settings, const Matrix<float>& logits,
                              std::span<const float> biases) {
  Routing<float> routing;
  routing.scores = logits;
  for (float& s : routing.scores.values()) s = arithmetic::sigmoid(s);
  routing.selection = select_by_insertion<float>(routing.scores, biases, settings.top_k);
  routing.weights = {logits.rows(), settings.top_k};
  for (std::size_t t = 0; t < logits.rows(); ++t) {
    float sum = 0.0f;
    for (const std::int32_t j : routing.selection.indices.row(t)) {
      sum += routing.scores(t, static_cast<std::size_t>(j));
    }
    routing.weight_sums.push_back(sum);
    for (std::size_t slot = 0; slot < settings.top_k; ++slot) {
      const auto j = static_cast<std::size_t>(routing.selection.indices(t, slot));
      routing.weights(t, slot) = routing.scores(t, j) / (sum + 1e-20f);
    }
  }
  return routing;
}

void expect_equal(const Routing<float>& a, const Routing<float>& b) {
  EXPECT_EQ(a.scores, b.scores);
  EXPECT_EQ(a.selection.indices, b.selection.indices);
  EXPECT_EQ(a.selection.cutoffs, b.selection.cutoffs);
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(a.weight_sums, b.weight_sums);
}

TEST(Router, IsItsDefinitionToTheBit) {
  const std::vector<float> biases = {0.1f, -0.05f, 0.0f, 0.2f, -0.1f, 0.0f, 0.05f, 0.0f, -0.2f};
  for (const std::size_t top_k : {1u, 3u, 8u, 9u}) {
    const auto settings = settings_of(9, top_k);
    const auto logits = drawn_logits(50, 9, top_k);
    expect_equal(Router<float>(settings).route(logits, biases),
                 routed_plainly(settings, logits, biases));
  }
}

TEST(Router, InPlaceComesOutAsInNewMemoryWhateverWasThere) {
  for (const ScoreFunction score :
       {ScoreFunction::sigmoid, ScoreFunction::softmax, ScoreFunction::logit}) {
    auto settings = settings_of(12, 3);
    settings.score = score;
    const Router<float> router(settings);
    const std::vector<float> biases(12, 0.0f);
    Routing<float> routing;
    for (const std::size_t tokens : {40u, 40u, 7u, 60u}) {
      const auto logits = drawn_logits(tokens, 12, tokens);
      routing.scores = logits;
      router.route_in_place(routing, biases);
      expect_equal(routing, router.route(logits, biases));
      EXPECT_EQ(routing.finite.size(), tokens);
    }
  }
}

TEST(Router, RenormalisedWeightsSumToTheScale) {
  auto settings = settings_of(4, 3);
  settings.routed_scale = 2.5;
  const auto routing = route(settings, {0.3f, -1.0f, 2.0f, 0.1f});
  float sum = 0.0f;
  for (const float p : routing.weights.row(0)) sum += p;
  EXPECT_NEAR(sum, 2.5f, 1e-6f);
}

TEST(Router, WeightsAreZeroWhenEveryChosenScoreIsZero) {
  const auto routing = route(settings_of(3, 2), {-inf, -inf, -inf});
  EXPECT_EQ(routing.weights(0, 0), 0.0f);
  EXPECT_EQ(routing.weights(0, 1), 0.0f);
  EXPECT_EQ(routing.selection.indices(0, 0), 0);
  EXPECT_EQ(routing.selection.indices(0, 1), 1);
}

TEST(Router, WeightOfATinyScoreSurvivesALargeBias) {
  // (s + b) - b would be 0 here: the raw score has to be gathered.
  const auto routing = route(settings_of(3, 2), {-17.0f, -18.0f, -40.0f}, {12.0f, 12.0f, 0.0f});
  const double s0 = 1.0 / (1.0 + std::exp(17.0)), s1 = 1.0 / (1.0 + std::exp(18.0));
  EXPECT_NEAR(routing.weights(0, 0), s0 / (s0 + s1), 1e-6);
}

TEST(Router, SaturatedScoresTieAndGoToTheLowerIndex) {
  const auto routing = route(settings_of(4, 2), {20.0f, 30.0f, 40.0f, 50.0f});
  EXPECT_EQ(routing.selection.indices(0, 0), 0);
  EXPECT_EQ(routing.selection.indices(0, 1), 1);
}

TEST(Router, NonfiniteLogitsLeaveKDistinctExperts) {
  for (const auto& logits : {std::vector<float>{nan, nan, nan, nan}, {nan, 1.0f, inf, -inf}, {inf, inf, inf, inf}}) {
    for (const auto score : {ScoreFunction::sigmoid, ScoreFunction::softmax, ScoreFunction::logit}) {
      auto settings = settings_of(4, 2);
      settings.score = score;
      const auto routing = route(settings, logits);
      const auto chosen = routing.selection.indices.row(0);
      EXPECT_NE(chosen[0], chosen[1]);
      for (const auto j : chosen) EXPECT_TRUE(j >= 0 && j < 4);
    }
  }
}

TEST(Router, InfiniteLogitsAreOrdinaryScoresUnderSigmoidAndNaNIsNot) {
  EXPECT_EQ(route(settings_of(3, 1), {inf, 0.0f, -inf}).finite[0], 1);
  EXPECT_EQ(route(settings_of(3, 1), {nan, 0.0f, 1.0f}).finite[0], 0);
  auto settings = settings_of(3, 1);
  settings.score = ScoreFunction::logit;
  EXPECT_EQ(route(settings, {inf, 0.0f, 1.0f}).finite[0], 0);
}

TEST(Router, OneNaNLeavesTheOtherExpertsWeightsAlone) {
  const auto routing = route(settings_of(3, 2), {nan, 1.0f, 0.0f});
  const auto without = route(settings_of(2, 2), {1.0f, 0.0f});
  EXPECT_EQ(routing.weights(0, 0), without.weights(0, 0));
  EXPECT_EQ(routing.weights(0, 1), without.weights(0, 1));
}

TEST(Router, BiasesOfOneSpaceChooseOtherwiseInAnother) {
  // The example of vLLM's Apertus2 test: logits (10, 1), subtractive biases (8, 0.5).
  auto settings = settings_of(2, 1);
  settings.score = ScoreFunction::logit;
  EXPECT_EQ(route(settings, {10.0f, 1.0f}, {-8.0f, -0.5f}).selection.indices(0, 0), 0);
  settings.score = ScoreFunction::sigmoid;
  EXPECT_EQ(route(settings, {10.0f, 1.0f}, {-8.0f, -0.5f}).selection.indices(0, 0), 1);
}

TEST(Router, ChoosesInsideTheBestGroups) {
  auto settings = settings_of(4, 2);
  settings.score = ScoreFunction::logit;
  settings.groups = {.count = 2, .chosen = 1};
  const auto routing = route(settings, {5.0f, 0.0f, 3.0f, 3.0f});
  EXPECT_EQ(routing.selection.indices(0, 0), 2);
  EXPECT_EQ(routing.selection.indices(0, 1), 3);
  settings.groups.count = 3;
  EXPECT_THROW(Router<float>{settings}, std::invalid_argument);
}

// ---- Other rules of assignment

Routing<float> route_all(const RouterSettings& settings, const Matrix<float>& logits, const RoutingContext& context = {},
                         std::vector<float> biases = {}) {
  if (biases.empty()) biases.assign(logits.cols(), 0.0f);
  return Router<float>(settings).route(Matrix<float>(logits), biases, context);
}

std::vector<std::int64_t> loads_of(const Routing<float>& routing, std::span<const std::uint8_t> valid = {}) {
  std::vector<std::int64_t> loads(routing.scores.cols());
  count_assignments(routing.selection.indices, valid, loads);
  return loads;
}

/// All tokens like expert 0 most, by ever less.
Matrix<float> crowded_logits() {
  Matrix<float> logits(8, 4, 0.0f);
  for (std::size_t t = 0; t < 8; ++t) {
    logits(t, 0) = 2.0f - 0.1f * static_cast<float>(t);
    logits(t, 1 + t % 3) = 0.5f;
  }
  return logits;
}

TEST(Router, BatchRulesBalanceInTraining) {
  for (const auto rule : {AssignmentRule::expert_choice, AssignmentRule::optimal}) {
    auto settings = settings_of(4, 1);
    settings.assignment.rule = rule;
    EXPECT_EQ(loads_of(route_all(settings, crowded_logits())), (std::vector<std::int64_t>(4, 2)));
  }
  auto settings = settings_of(4, 1);
  EXPECT_EQ(loads_of(route_all(settings, crowded_logits()))[0], 8);
  settings.assignment.rule = AssignmentRule::sinkhorn;
  EXPECT_LT(loads_of(route_all(settings, crowded_logits()))[0], 5);
}

TEST(Router, SinkhornAndOptimalAreTopKInEvaluation) {
  const auto plain = route_all(settings_of(4, 2), crowded_logits());
  for (const auto rule : {AssignmentRule::sinkhorn, AssignmentRule::optimal}) {
    auto settings = settings_of(4, 2);
    settings.assignment.rule = rule;
    const auto routing = route_all(settings, crowded_logits(), {.training = false});
    EXPECT_EQ(routing.selection.indices, plain.selection.indices);
    EXPECT_EQ(routing.weights, plain.weights);
  }
}

TEST(Router, BatchRulesGivePaddingNoPlace) {
  const std::vector<std::uint8_t> valid{1, 0, 1, 0, 1, 0, 1, 0};
  for (const auto rule : {AssignmentRule::expert_choice, AssignmentRule::optimal}) {
    auto settings = settings_of(4, 1);
    settings.assignment.rule = rule;
    EXPECT_EQ(loads_of(route_all(settings, crowded_logits(), {.valid = valid}), valid), (std::vector<std::int64_t>(4, 1)));
  }
}

TEST(Router, ThresholdGivesATokenAllNoneOrSomeExperts) {
  auto settings = settings_of(3, 1);
  settings.assignment.rule = AssignmentRule::threshold;
  settings.score = ScoreFunction::logit;
  Matrix<float> logits(3, 3, -1.0f);
  logits(0, 1) = 2.0f;
  for (float& z : logits.row(2)) z = 1.0f;
  const auto routing = route_all(settings, logits, {}, {-0.5f, -0.5f, -0.5f});
  const auto& indices = routing.selection.indices;
  EXPECT_EQ(indices(0, 0), 1);
  EXPECT_EQ(indices(0, 1), no_expert);
  EXPECT_EQ(indices(1, 0), no_expert);
  EXPECT_EQ(indices(2, 2), 2);
  EXPECT_FLOAT_EQ(routing.weights(0, 0), 1.0f);
  EXPECT_EQ(routing.weights(0, 1), 0.0f);
  EXPECT_EQ(routing.weights(1, 0), 0.0f);
  EXPECT_FLOAT_EQ(routing.weights(2, 0), 1.0f / 3.0f);
}

TEST(Router, DroppedAssignmentsWeighNothingAndTheOthersKeepTheirWeight) {
  auto settings = settings_of(4, 2);
  const auto free = route_all(settings, crowded_logits());
  EXPECT_EQ(free.kept.rows(), 0u);
  settings.assignment.capacity = {.drop = DropPolicy::probs, .factor = 1.0};  // 4 of 8 tokens
  const auto limited = route_all(settings, crowded_logits());
  EXPECT_EQ(limited.selection.indices, free.selection.indices);
  std::int64_t kept_by_0 = 0;
  for (std::size_t t = 0; t < 8; ++t) {
    for (std::size_t slot = 0; slot < 2; ++slot) {
      const bool kept = limited.kept(t, slot) != no_expert;
      kept_by_0 += limited.kept(t, slot) == 0;
      EXPECT_EQ(limited.weights(t, slot), kept ? free.weights(t, slot) : 0.0f);
    }
  }
  EXPECT_EQ(kept_by_0, 4);
  EXPECT_NE(limited.kept(0, 0), no_expert);  // the largest weights stay
  EXPECT_EQ(limited.kept(7, 0), no_expert);
}

TEST(Router, RefusesTopKOutsideItsRangeAndOtherShapes) {
  EXPECT_THROW(Router<float>(settings_of(4, 0)), std::invalid_argument);
  EXPECT_THROW(Router<float>(settings_of(4, 5)), std::invalid_argument);
  EXPECT_THROW(route(settings_of(4, 1), {0, 0, 0}), std::invalid_argument);
  EXPECT_THROW(route(settings_of(3, 1), {0, 0, 0}, {0, 0}), std::invalid_argument);
}

}  // namespace
}  // namespace ballast
