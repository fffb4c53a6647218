#include "core/assignment/expert_choice.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

#include "core/model/selection.h"
#include "tests/core/support/matrices.h"
#include "tests/core/support/routing_cases.h"

namespace ballast {
namespace {

using oracle::matrix;
using Counts = std::vector<std::int64_t>;
using Indices = std::vector<std::int32_t>;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

Counts loads_of(const Matrix<std::int32_t>& indices, std::size_t experts) {
  Counts loads(experts);
  count_assignments(indices, {}, loads);
  return loads;
}

Indices values(const Matrix<std::int32_t>& indices) {
  return {indices.values().begin(), indices.values().end()};
}

TEST(ExpertChoice, EveryExpertTakesItsBestTokens) {
  // Two of four tokens each; token 0 gets both experts, token 3 none.
  const auto scores = matrix({{.9f, .8f}, {.7f, .1f}, {.2f, .6f}, {.1f, .2f}});
  EXPECT_EQ(values(choose_by_expert<float>(scores, std::vector<float>(2), {}, 1)),
            (Indices{0, 1, 0, no_expert, 1, no_expert, no_expert, no_expert}));
}

TEST(ExpertChoice, TiesGoToTheLowerTokenAndNaNComesLast) {
  const auto scores = matrix({{nan, nan}, {.5f, 0.0f}, {.5f, -0.0f}, {.5f, nan}});
  EXPECT_EQ(values(choose_by_expert<float>(scores, std::vector<float>(2), {}, 1)),
            (Indices{no_expert, no_expert, 0, 1, 0, 1, no_expert, no_expert}));
}

TEST(ExpertChoice, OnlyValidTokensAreTakenAndCounted) {
  const auto scores = matrix({{.9f, .9f}, {.1f, .1f}, {.2f, .2f}, {.8f, .8f}});
  const auto indices = choose_by_expert<float>(scores, std::vector<float>(2), std::vector<std::uint8_t>{0, 1, 1, 0}, 1);
  EXPECT_EQ(values(indices), (Indices{no_expert, no_expert, no_expert, no_expert, 0, 1, no_expert, no_expert}));
  const auto none = choose_by_expert<float>(scores, std::vector<float>(2), std::vector<std::uint8_t>(4, 0), 1);
  EXPECT_EQ(loads_of(none, 2), (Counts{0, 0}));
}

RC_GTEST_PROP(ExpertChoice, LoadsAreEqualAndChosenScoresAreTheColumnsLargest, ()) {
  const auto c = oracle::drawn_routing_case();
  const auto indices = choose_by_expert<float>(c.scores, c.biases, {}, c.top_k);
  const auto share = static_cast<std::int64_t>((c.tokens() * c.top_k + c.experts() - 1) / c.experts());
  RC_ASSERT(loads_of(indices, c.experts()) == Counts(c.experts(), share));
  for (std::size_t j = 0; j < c.experts(); ++j) {
    float worst_taken = 2.0f, best_left = -1.0f;
    for (std::size_t t = 0; t < c.tokens(); ++t) {
      const auto row = indices.row(t);
      const bool taken = std::ranges::find(row, static_cast<std::int32_t>(j)) != row.end();
      (taken ? worst_taken : best_left) = taken ? std::min(worst_taken, c.scores(t, j)) : std::max(best_left, c.scores(t, j));
    }
    RC_ASSERT(worst_taken >= best_left);
  }
}

TEST(ThresholdChoice, TakesEveryExpertAboveItsThreshold) {
  const auto scores = matrix({{.9f, .5f, .2f}, {.1f, .1f, .1f}, {.9f, .9f, .9f}});
  EXPECT_EQ(values(choose_above_threshold<float>(scores, std::vector<float>{-.5f, -.5f, -.1f})),
            (Indices{0, 2, no_expert, no_expert, no_expert, no_expert, 0, 1, 2}));
}

TEST(ThresholdChoice, NaNIsAboveNothing) {
  const auto indices = choose_above_threshold<float>(matrix({{nan, 1.0f}}), std::vector<float>(2));
  EXPECT_EQ(values(indices), (Indices{1}));
}

}  // namespace
}  // namespace ballast
