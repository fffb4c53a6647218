#include "core/model/router.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/random/stream.h"

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

TEST(Router, RefusesTopKOutsideItsRangeAndOtherShapes) {
  EXPECT_THROW(Router<float>(settings_of(4, 0)), std::invalid_argument);
  EXPECT_THROW(Router<float>(settings_of(4, 5)), std::invalid_argument);
  EXPECT_THROW(route(settings_of(4, 1), {0, 0, 0}), std::invalid_argument);
  EXPECT_THROW(route(settings_of(3, 1), {0, 0, 0}, {0, 0}), std::invalid_argument);
}

}  // namespace
}  // namespace ballast
