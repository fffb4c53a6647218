#include "props/oracles/exact_routing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "props/laws/law.h"
#include "props/subjects/built_in_subject.h"
#include "tests/props/support/trials.h"

namespace ballast::props {
namespace {

using Experts = std::vector<std::int64_t>;

ExactToken token_of(std::vector<float> logits, std::vector<double> biases,
                    ScoreFunction score = ScoreFunction::logit) {
  return exact_token({.routed_experts = logits.size(), .score = score}, logits, biases);
}

TEST(ExactToken, HasNoMarginWhereNothingIsRounded) {
  const auto token = token_of({1.0f, -0.5f}, {0.25, 0.0});
  EXPECT_EQ(token.values, (std::vector<double>{1.25, -0.5}));
  EXPECT_EQ(token.margins, (std::vector<double>{0.0, 0.0}));
}

TEST(ExactToken, HasAMarginWhereFp32Rounds) {
  EXPECT_GT(token_of({1.0f}, {1e-9}).margins[0], 0.0);
  EXPECT_GT(token_of({0.5f}, {0.0}, ScoreFunction::sigmoid).margins[0], 0.0);
  EXPECT_LT(token_of({0.5f}, {0.0}, ScoreFunction::sigmoid).margins[0], 1e-6);
}

TEST(WrongChoice, JudgesExactTiesByIndex) {
  const auto token = token_of({1, 1, 1}, {0, 0, 0});
  EXPECT_FALSE(wrong_choice(token, Experts{0, 1}));
  EXPECT_TRUE(wrong_choice(token, Experts{1, 0})) << "not best first";
  EXPECT_TRUE(wrong_choice(token, Experts{0, 2})) << "not the lowest of the tied";
  EXPECT_TRUE(ties_at_cutoff(token, 2));
}

TEST(WrongChoice, TakesZerosOfBothSignsForEqual) {
  const auto token = token_of({-0.0f, 0.0f}, {0, 0});
  EXPECT_FALSE(wrong_choice(token, Experts{0}));
  EXPECT_TRUE(wrong_choice(token, Experts{1}));
}

TEST(WrongChoice, LeavesNeighboursWithinRoundingOpen) {
  const float above = std::nextafter(1.0f, 2.0f);
  const auto rounded = token_of({1.0f, above}, {0, 0}, ScoreFunction::sigmoid);
  EXPECT_FALSE(wrong_choice(rounded, Experts{0}));
  EXPECT_FALSE(wrong_choice(rounded, Experts{1}));
  EXPECT_FALSE(sure_choice(rounded, 1));
  const auto exact = token_of({1.0f, above}, {0, 0});
  EXPECT_TRUE(wrong_choice(exact, Experts{0}));
  EXPECT_EQ(sure_choice(exact, 1), Experts{1});
}

TEST(WrongChoice, IsNotDefinedWithNaN) {
  const auto token = token_of({std::nanf(""), 1.0f}, {0, 0});
  EXPECT_FALSE(token.ordered);
  EXPECT_FALSE(wrong_choice(token, Experts{0}));
  EXPECT_FALSE(sure_choice(token, 1));
}

TEST(SureChoice, IsIndependentOfNumbersWithoutTies) {
  const auto token = token_of({2, 1, 1}, {0, 0, 0});
  EXPECT_EQ(sure_choice(token, 2), (Experts{0, 1}));
  EXPECT_EQ(sure_choice(token, 2, false), std::nullopt);
  EXPECT_EQ(sure_choice(token, 1, false), Experts{0});
}

bool accepts(const ModelSpec& model, const ExactToken& token, const Experts& chosen,
             const std::vector<double>& weights) {
  const auto ranges = weight_ranges(model, token, chosen);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] < (*ranges)[i].low || weights[i] > (*ranges)[i].high) return false;
  }
  return true;
}

TEST(WeightRanges, HoldTheFormulaToAFewUlp) {
  ModelSpec model{.routed_experts = 2, .top_k = 2, .routed_scale = 2.0};
  const std::vector<float> logits = {0.0f, 0.0f};
  const auto token = exact_token(model, logits, std::vector<double>{5.0, 5.0});
  EXPECT_TRUE(accepts(model, token, {0, 1}, {1.0, 1.0}));
  EXPECT_TRUE(accepts(model, token, {0, 1}, {1.0 + 2e-7, 1.0 - 2e-7}));
  EXPECT_FALSE(accepts(model, token, {0, 1}, {1.0 + 1e-5, 1.0}));
  model.renormalize = false;
  EXPECT_TRUE(accepts(model, token, {0, 1}, {1.0, 1.0})) << "0.5 times the scale";
  EXPECT_FALSE(accepts(model, token, {0, 1}, {11.0, 11.0})) << "biased";
}

TEST(WeightRanges, AskLittleOfVanishingScores) {
  const ModelSpec model{.routed_experts = 2, .top_k = 1};
  const std::vector<float> logits = {-200.0f, -300.0f};
  const auto token = exact_token(model, logits, std::vector<double>{0.0, 0.0});
  EXPECT_TRUE(accepts(model, token, {0}, {0.0}));
  EXPECT_TRUE(accepts(model, token, {0}, {1.0}));
  EXPECT_FALSE(accepts(model, token, {0}, {1.5}));
}

/// All rows of `experts` values among `values`.
Matrix<float> all_rows(std::size_t experts, const std::vector<float>& values) {
  std::size_t count = 1;
  for (std::size_t j = 0; j < experts; ++j) count *= values.size();
  Matrix<float> rows(count, experts);
  for (std::size_t t = 0; t < count; ++t) {
    std::size_t digits = t;
    for (std::size_t j = 0; j < experts; ++j, digits /= values.size()) {
      rows(t, j) = values[digits % values.size()];
    }
  }
  return rows;
}

// Every small world: all logits and all biases on a grid with ties, every top_k.
TEST(BuiltInSubject, ChoosesAndWeighsRightInEverySmallWorld) {
  BuiltInSubject subject;
  const Law& selection = law_of("selection.top-k");
  const Law& weights = law_of("weights.value");
  for (std::size_t experts = 1; experts <= 4; ++experts) {
    const Matrix<float> logits = all_rows(experts, {-1.0f, -0.0f, 0.0f, 0.5f});
    const Matrix<float> biases = all_rows(experts, {0.0f, 0.5f, -1.0f});
    for (std::size_t top_k = 1; top_k <= experts; ++top_k) {
      for (std::size_t b = 0; b < biases.rows(); ++b) {
        Case world;
        world.open.model = {
            .routed_experts = experts, .top_k = top_k, .score = ScoreFunction::logit};
        world.open.biases = Biases{{biases.row(b).begin(), biases.row(b).end()}};
        world.history = {Forward{.mode = Mode::eval, .logits = logits, .mask = {}}};
        for (const Law* law : {&selection, &weights}) {
          const Outcome outcome = law->check(subject, world);
          ASSERT_EQ(outcome.kind, Outcome::Kind::holds) << describe(*law, outcome);
        }
      }
    }
  }
}

}  // namespace
}  // namespace ballast::props
