#include "core/assignment/sinkhorn.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/core/support/bits.h"
#include "tests/core/support/matrices.h"
#include "tests/core/support/random_matrix.h"

namespace ballast {
namespace {

using oracle::bits;
using oracle::matrix;

constexpr SinkhornSettings to_the_end{.iterations_max = 10000, .tolerance = 1e-14};

double row_sum(const Matrix<double>& plan, std::size_t t) {
  double sum = 0.0;
  for (const double p : plan.row(t)) sum += p;
  return sum;
}

double column_sum(const Matrix<double>& plan, std::size_t j) {
  double sum = 0.0;
  for (std::size_t t = 0; t < plan.rows(); ++t) sum += plan(t, j);
  return sum;
}

TEST(Sinkhorn, BalancesRowsAndColumns) {
  const auto logits = test::random_matrix<float>(40, 6, 1, 2.0);
  const auto out = sinkhorn_plan<float>(logits, {}, to_the_end);
  for (std::size_t t = 0; t < 40; ++t) EXPECT_NEAR(row_sum(out.plan, t), 1.0 / 40, 1e-7);
  for (std::size_t j = 0; j < 6; ++j) EXPECT_NEAR(column_sum(out.plan, j), 1.0 / 6, 1e-7);
}

// For 2 x 2 the plan [[a, b], [b, a]] / 2 with a + b = 1 keeps the odds ratio: a / b = e^((z00 + z11 - z01 - z10) / 2).
TEST(Sinkhorn, GivesThePlanOfTwoByTwoInClosedForm) {
  const auto out = sinkhorn_plan<float>(matrix({{3.0f, 1.0f}, {0.5f, 0.0f}}), {}, to_the_end);
  const double a = 0.5 / (1.0 + std::exp(-(3.0 + 0.0 - 1.0 - 0.5) / 2.0));
  EXPECT_NEAR(out.plan(0, 0), a, 1e-7);
  EXPECT_NEAR(out.plan(0, 1), 0.5 - a, 1e-7);
  EXPECT_NEAR(out.plan(1, 0), 0.5 - a, 1e-7);
  EXPECT_NEAR(out.plan(1, 1), a, 1e-7);
}

TEST(Sinkhorn, IsIndifferentToAConstantOfATokenOrOfAllLogits) {
  const auto logits = matrix({{3.0f, 1.0f, 0.0f}, {0.5f, 0.0f, 2.0f}});
  const auto moved = matrix({{103.0f, 101.0f, 100.0f}, {-99.5f, -100.0f, -98.0f}});
  EXPECT_EQ(bits(sinkhorn_plan<float>(logits, {}, {}).plan.values()),
            bits(sinkhorn_plan<float>(moved, {}, {}).plan.values()));
}

TEST(Sinkhorn, DoesNotOverflowWhereItsExponentialWould) {
  const auto out = sinkhorn_plan<float>(matrix({{3e38f, 0.0f}, {1000.0f, 999.0f}}), {}, {});
  for (const double p : out.plan.values()) EXPECT_TRUE(std::isfinite(p));
}

TEST(Sinkhorn, StopsAtItsCapOrItsTolerance) {
  const auto logits = test::random_matrix<float>(10, 4, 2, 3.0);
  EXPECT_EQ(sinkhorn_plan<float>(logits, {}, {.iterations_max = 3, .tolerance = 0.0}).iterations, 3u);
  const auto loose = sinkhorn_plan<float>(logits, {}, {.iterations_max = 1000, .tolerance = 1e-2}).iterations;
  const auto strict = sinkhorn_plan<float>(logits, {}, {.iterations_max = 1000, .tolerance = 1e-6}).iterations;
  EXPECT_LT(loose, strict);
  EXPECT_LT(strict, 1000u);
  EXPECT_THROW(sinkhorn_plan<float>(logits, {}, {.iterations_max = 0}), std::invalid_argument);
}

TEST(Sinkhorn, TokensThatAreNotValidChangeNothingForTheOthers) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const auto alone = matrix({{3.0f, 1.0f}, {0.5f, 0.0f}});
  const auto padded = matrix({{3.0f, 1.0f}, {nan, 7.0f}, {0.5f, 0.0f}, {9.0f, 0.0f}});
  const auto a = sinkhorn_plan<float>(alone, {}, {}).plan;
  const auto b = sinkhorn_plan<float>(padded, std::vector<std::uint8_t>{1, 0, 1, 0}, {}).plan;
  EXPECT_EQ(bits(a.row(0)), bits(b.row(0)));
  EXPECT_EQ(bits(a.row(1)), bits(b.row(2)));
}

}  // namespace
}  // namespace ballast
