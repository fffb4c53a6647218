#include "core/balancers/required_biases.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

#include "tests/core/support/bits.h"
#include "tests/core/support/matrices.h"
#include "tests/core/support/routing_cases.h"
#include "tests/core/support/selection.h"

namespace ballast {
namespace {

using oracle::bits;
using oracle::matrix;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

oracle::RoutedTokens example() {
  return oracle::route(matrix({{0.5f, 0.25f, 0.125f}, {0.0f, 1.0f, 0.5f}}),
                       std::vector<float>{0, 0, 0.25f}, 1);
}

// Fact 1 of the derivation: an expert is chosen below its bias, just missed at it, and lost above
// it. The drawn sums are exact, so rounding plays no part; ties of biased scores are left out.
RC_GTEST_PROP(RequiredBiases, SayWhichBiasWouldHaveBeenEnough, ()) {
  const auto c = oracle::drawn_routing_case();
  const auto routed = oracle::route(c.scores, c.biases, c.top_k);
  const auto required = required_biases(routed.batch(), c.experts(), c.top_k);
  for (std::size_t i = 0; i < c.tokens(); ++i) {
    for (std::size_t j = 0; j < c.experts(); ++j) {
      const auto row = routed.indices.row(i);
      const bool chosen =
          std::find(row.begin(), row.end(), static_cast<std::int32_t>(j)) != row.end();
      if (required(i, j) < c.biases[j]) RC_ASSERT(chosen);
      if (required(i, j) > c.biases[j]) RC_ASSERT(!chosen);
    }
  }
}

TEST(RequiredBiases, UseTheRawScoreAgainstTheBiasedCutoff) {
  const auto required = required_biases(example().batch(), 3, 1);
  EXPECT_EQ(required, matrix({{-0.125f, 0.125f, 0.25f}, {0.75f, -0.25f, 0.25f}}));
}

TEST(RequiredBiases, LeaveOutRowsThatAreNotValidWhateverTheyHold) {
  auto routed = example();
  routed.valid = {0, 7};
  routed.cutoffs[0] = nan;
  routed.scores(0, 1) = -infinity;
  EXPECT_EQ(required_biases(routed.batch(), 3, 1), matrix({{0.75f, -0.25f, 0.25f}}));
}

TEST(RequiredBiases, TakeAnEmptyMaskForAllValid) {
  auto routed = example();
  routed.valid.clear();
  EXPECT_EQ(required_biases(routed.batch(), 3, 1).rows(), 2u);
}

TEST(RequiredBiases, HaveNoNegativeZeros) {
  auto routed = oracle::route(matrix({{0.0f, -0.0f}}), std::vector<float>{-0.0f, -0.0f}, 1);
  routed.cutoffs = {-0.0f};
  EXPECT_EQ(bits(required_biases(routed.batch(), 2, 1).values()),
            bits(std::vector<float>{0.0f, 0.0f}));
}

TEST(RequiredBiases, RefuseAValidRowThatIsNotFinite) {
  for (const float bad : {nan, infinity, -infinity}) {
    auto routed = example();
    routed.scores(1, 2) = bad;
    EXPECT_THROW(required_biases(routed.batch(), 3, 1), std::invalid_argument);
    routed = example();
    routed.cutoffs[0] = bad;
    EXPECT_THROW(required_biases(routed.batch(), 3, 1), std::invalid_argument);
  }
}

TEST(RequiredBiases, RefuseADifferenceThatOverflows) {
  auto routed = example();
  routed.cutoffs[0] = 3e38f;
  routed.scores(0, 0) = -3e38f;
  EXPECT_THROW(required_biases(routed.batch(), 3, 1), std::invalid_argument);
}

TEST(RequiredBiases, RefuseEveryWrongShape) {
  EXPECT_THROW(required_biases(example().batch(), 4, 1), std::invalid_argument);
  EXPECT_THROW(required_biases(example().batch(), 3, 2), std::invalid_argument);
  auto routed = example();
  routed.cutoffs.push_back(0);
  EXPECT_THROW(required_biases(routed.batch(), 3, 1), std::invalid_argument);
  routed = example();
  routed.indices = Matrix<std::int32_t>(1, 1);
  EXPECT_THROW(required_biases(routed.batch(), 3, 1), std::invalid_argument);
  // A mask along the experts: of the right length only by accident, never here.
  routed = example();
  routed.valid = {1, 1, 1};
  EXPECT_THROW(required_biases(routed.batch(), 3, 1), std::invalid_argument);
}

}  // namespace
}  // namespace ballast
