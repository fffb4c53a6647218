#include "core/assignment/capacity.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

#include "core/assignment/chosen_experts.h"
#include "core/model/selection.h"
#include "tests/core/support/matrices.h"
#include "tests/core/support/routing_cases.h"
#include "tests/core/support/selection.h"

namespace ballast {
namespace {

using Indices = std::vector<std::int32_t>;
using Counts = std::vector<std::int64_t>;

/// Top-1 tokens for experts 0, 0, 0, 1 with weights that rise.
struct Batch {
  Matrix<std::int32_t> indices{4, 1};
  Matrix<float> weights = oracle::matrix({{0.1f}, {0.2f}, {0.3f}, {0.4f}});
  Batch() { indices(3, 0) = 1; }

  Indices kept(std::int64_t capacity, DropPolicy policy, std::vector<std::uint8_t> valid = {}) const {
    const auto out = drop_beyond<float>(capacity, policy, indices, weights, valid, 2);
    return {out.values().begin(), out.values().end()};
  }
};

TEST(Capacity, IsTheCeilingOfItsShare) {
  EXPECT_EQ(expert_capacity(1.0, 8, 2, 4), 4);
  EXPECT_EQ(expert_capacity(1.25, 8, 2, 4), 5);
  EXPECT_EQ(expert_capacity(1.1, 8, 2, 4), 5);
  EXPECT_EQ(expert_capacity(1.0, 5, 1, 4), 2);
  EXPECT_EQ(expert_capacity(100.0, 8, 2, 4), 8);  // as much as all tokens
  EXPECT_EQ(expert_capacity(1.0, 0, 2, 4), 0);
}

TEST(Capacity, KeepsTheLargestWeightsOrTheFirstTokens) {
  EXPECT_EQ(Batch().kept(2, DropPolicy::probs), (Indices{no_expert, 0, 0, 1}));
  EXPECT_EQ(Batch().kept(2, DropPolicy::position), (Indices{0, 0, no_expert, 1}));
  EXPECT_EQ(Batch().kept(0, DropPolicy::position), Indices(4, no_expert));
}

TEST(Capacity, EqualWeightsGoToTheLowerTokenAndNaNComesLast) {
  Batch batch;
  batch.weights = oracle::matrix({{std::numeric_limits<float>::quiet_NaN()}, {0.2f}, {0.2f}, {0.4f}});
  EXPECT_EQ(batch.kept(1, DropPolicy::probs), (Indices{no_expert, 0, no_expert, 1}));
  EXPECT_EQ(batch.kept(2, DropPolicy::probs), (Indices{no_expert, 0, 0, 1}));
}

TEST(Capacity, PaddingTakesNone) {
  EXPECT_EQ(Batch().kept(2, DropPolicy::position, {0, 1, 1, 1}), (Indices{no_expert, 0, 0, 1}));
}

RC_GTEST_PROP(Capacity, LimitsEveryLoadAndDropsNothingBelow, ()) {
  const auto c = oracle::drawn_routing_case();
  const auto routed = oracle::route(c.scores, c.biases, c.top_k);
  Matrix<float> weights(c.tokens(), c.top_k);
  for (std::size_t t = 0; t < c.tokens(); ++t) {
    for (std::size_t slot = 0; slot < c.top_k; ++slot) {
      weights(t, slot) = c.scores(t, static_cast<std::size_t>(routed.indices(t, slot)));
    }
  }
  const auto capacity = *rc::gen::inRange<std::int64_t>(0, 41);
  const auto policy = *rc::gen::element(DropPolicy::probs, DropPolicy::position);
  const auto kept = drop_beyond<float>(capacity, policy, routed.indices, weights, {}, c.experts());
  Counts chosen(c.experts()), left(c.experts());
  count_assignments(routed.indices, {}, chosen);
  count_assignments(kept, {}, left);
  for (std::size_t j = 0; j < c.experts(); ++j) RC_ASSERT(left[j] == std::min(chosen[j], capacity));
  for (std::size_t i = 0; i < kept.values().size(); ++i) {
    RC_ASSERT(kept.values()[i] == no_expert || kept.values()[i] == routed.indices.values()[i]);
  }
}

}  // namespace
}  // namespace ballast
