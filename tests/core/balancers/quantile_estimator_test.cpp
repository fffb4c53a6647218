// Laws that the estimators have in common, or that tell them apart.
#include "core/balancers/quantile_estimator.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "core/balancers/histogram.h"
#include "tests/core/support/bits.h"
#include "tests/core/support/matrices.h"
#include "tests/core/support/quantile_cases.h"
#include "tests/core/support/routing_cases.h"

namespace ballast {
namespace {

using oracle::all_estimators;
using oracle::bits;
using oracle::expect_near;
using oracle::matrix;
using oracle::repeated;

Matrix<float> rows_of(const Matrix<float>& scores, const std::vector<std::size_t>& tokens) {
  Matrix<float> out(tokens.size(), scores.cols());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::copy(scores.row(tokens[i]).begin(), scores.row(tokens[i]).end(), out.row(i).begin());
  }
  return out;
}

// The tokens of the case in any order, cut into forwards anywhere, each on any rank.
RC_GTEST_PROP(QuantileEstimator, PooledEstimatesDoNotDependOnSplitsRanksOrOrder, ()) {
  const auto kind =
      *rc::gen::element(QuantileEstimatorKind::exact, QuantileEstimatorKind::histogram);
  const auto c = oracle::drawn_routing_case();
  const auto whole = oracle::estimator(kind, c.experts(), c.top_k);
  oracle::observe(*whole, c.scores, c.biases, c.top_k);

  const auto forward_of_token = *rc::gen::container<std::vector<std::size_t>>(
      c.tokens(), rc::gen::inRange<std::size_t>(0, 5));
  const auto split = oracle::estimator(kind, c.experts(), c.top_k);
  for (std::size_t forward = 0; forward < 5; ++forward) {
    std::vector<std::size_t> tokens;
    for (std::size_t i = c.tokens(); i-- > 0;) {
      if (forward_of_token[i] == forward) tokens.push_back(i);
    }
    if (tokens.empty()) continue;
    const auto rank = *rc::gen::inRange<std::size_t>(0, 3);
    oracle::observe(*split, rows_of(c.scores, tokens), c.biases, c.top_k, rank);
  }
  RC_ASSERT(split->tokens() == whole->tokens());
  RC_ASSERT(bits(*split->estimate(c.biases)) == bits(*whole->estimate(c.biases)));
}

// m k / E and every rank scale alike. The exact and the histogram rule; q must be whole for the
// exact one: floor(2 q) + 1 is another order statistic of the doubled batch when q has a fraction
// of a half or more.
RC_GTEST_PROP(QuantileEstimator, PooledEstimatesStayWhenTheWholeBatchComesTwice, ()) {
  auto c = oracle::drawn_routing_case();
  const auto kind =
      *rc::gen::element(QuantileEstimatorKind::exact, QuantileEstimatorKind::histogram);
  RC_PRE(c.tokens() * c.top_k % c.experts() == 0);
  const auto once = oracle::estimator(kind, c.experts(), c.top_k);
  const auto twice = oracle::estimator(kind, c.experts(), c.top_k);
  oracle::observe(*once, c.scores, c.biases, c.top_k);
  oracle::observe(*twice, c.scores, c.biases, c.top_k);
  oracle::observe(*twice, c.scores, c.biases, c.top_k);
  RC_ASSERT(bits(*once->estimate(c.biases)) == bits(*twice->estimate(c.biases)));
}

RC_GTEST_PROP(QuantileEstimator, MovesWithAConstantOnAllBiases, ()) {
  const auto kind =
      *rc::gen::elementOf(std::vector(std::begin(all_estimators), std::end(all_estimators)));
  const auto c = oracle::drawn_routing_case();
  const float constant = static_cast<float>(*rc::gen::inRange(-8, 9)) * 0.5f;
  auto shifted = c.biases;
  for (float& b : shifted) b += constant;
  const auto a = oracle::estimator(kind, c.experts(), c.top_k, 64);
  const auto b = oracle::estimator(kind, c.experts(), c.top_k, 64);
  oracle::observe(*a, c.scores, c.biases, c.top_k);
  oracle::observe(*b, c.scores, shifted, c.top_k);
  auto expected = *a->estimate(c.biases);
  for (double& value : expected) value += static_cast<double>(constant);
  // The histogram's bins need not be whole multiples of the case's unit, so a value on an edge may
  // fall to the other side; everything else is exact.
  const auto estimate = *b->estimate(shifted);
  for (std::size_t j = 0; j < c.experts(); ++j) {
    const double room = kind == QuantileEstimatorKind::histogram
                            ? HistogramRange(c.biases, 64).width() * 1.001
                            : 0.0;
    RC_ASSERT(std::abs(estimate[j] - expected[j]) <= room);
  }
}

// Multiplying by a power of two is exact. The histogram's range does not scale.
RC_GTEST_PROP(QuantileEstimator, OrderStatisticsScaleWithScoresAndBiases, ()) {
  const auto kind =
      *rc::gen::element(QuantileEstimatorKind::exact, QuantileEstimatorKind::microbatch_mean,
                        QuantileEstimatorKind::chunk_mean);
  const auto c = oracle::drawn_routing_case();
  auto scores = c.scores;
  auto biases = c.biases;
  for (float& s : scores.values()) s *= 4;
  for (float& b : biases) b *= 4;
  const auto a = oracle::estimator(kind, c.experts(), c.top_k);
  const auto b = oracle::estimator(kind, c.experts(), c.top_k);
  oracle::observe(*a, c.scores, c.biases, c.top_k);
  oracle::observe(*b, scores, biases, c.top_k);
  auto expected = *a->estimate(c.biases);
  for (double& value : expected) value *= 4;
  RC_ASSERT(*b->estimate(biases) == expected);
}

// Logits may carry any constant per token: r takes it out. Exact in the cases' multiples.
RC_GTEST_PROP(QuantileEstimator, OrderStatisticsIgnoreAConstantOnATokensScores, ()) {
  const auto kind =
      *rc::gen::element(QuantileEstimatorKind::exact, QuantileEstimatorKind::microbatch_mean,
                        QuantileEstimatorKind::chunk_mean);
  const auto c = oracle::drawn_routing_case();
  const auto constants = oracle::drawn_multiples(c.tokens(), -16, 16, 0.25f);
  auto scores = c.scores;
  for (std::size_t i = 0; i < c.tokens(); ++i) {
    for (float& s : scores.row(i)) s += constants[i];
  }
  const auto a = oracle::estimator(kind, c.experts(), c.top_k);
  const auto b = oracle::estimator(kind, c.experts(), c.top_k);
  oracle::observe(*a, c.scores, c.biases, c.top_k);
  oracle::observe(*b, scores, c.biases, c.top_k);
  RC_ASSERT(bits(*a->estimate(c.biases)) == bits(*b->estimate(c.biases)));
}

RC_GTEST_PROP(QuantileEstimator, PermutesWithTheExperts, ()) {
  const auto kind =
      *rc::gen::elementOf(std::vector(std::begin(all_estimators), std::end(all_estimators)));
  const auto c = oracle::drawn_routing_case();
  // Reversal and a rotation generate enough.
  const auto rotation = *rc::gen::inRange<std::size_t>(0, c.experts());
  const auto image = [&](std::size_t j) { return (c.experts() - 1 - j + rotation) % c.experts(); };
  Matrix<float> scores(c.tokens(), c.experts());
  std::vector<float> biases(c.experts());
  for (std::size_t j = 0; j < c.experts(); ++j) {
    biases[image(j)] = c.biases[j];
    for (std::size_t i = 0; i < c.tokens(); ++i) scores(i, image(j)) = c.scores(i, j);
  }
  const auto a = oracle::estimator(kind, c.experts(), c.top_k);
  const auto b = oracle::estimator(kind, c.experts(), c.top_k);
  oracle::observe(*a, c.scores, c.biases, c.top_k);
  oracle::observe(*b, scores, biases, c.top_k);
  const auto original = *a->estimate(c.biases);
  const auto permuted = *b->estimate(biases);
  for (std::size_t j = 0; j < c.experts(); ++j) RC_ASSERT(permuted[image(j)] == original[j]);
}

// Golden vector B: two ranks that prefer opposite ends. The mean of their own estimates is not the
// estimate of their tokens together.
TEST(QuantileEstimator, PoolingIsNotAveraging) {
  const auto first = repeated(4, {.92f, .68f, .31f, .07f});
  const auto second = repeated(4, {.07f, .31f, .92f, .68f});
  const std::vector<float> zeros(4);
  const auto estimate = [&](std::initializer_list<const Matrix<float>*> ranks) {
    const auto estimator = oracle::estimator(QuantileEstimatorKind::histogram, 4, 1, 10);
    std::size_t rank = 0;
    for (const auto* scores : ranks) oracle::observe(*estimator, *scores, zeros, 1, rank++);
    auto values = *estimator->estimate(zeros);
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / 4;
    for (double& v : values) v -= mean;
    return values;
  };
  expect_near(estimate({&first}), std::vector<double>{-0.5, -0.1, 0.1, 0.5});
  expect_near(estimate({&second}), std::vector<double>{0.5, 0.1, -0.5, -0.1});
  expect_near(estimate({&first, &second}), std::vector<double>{-0.2, 0.2, -0.2, 0.2});
}

// The same with exact statistics: ranks with unlike tokens tell all three rules apart.
TEST(QuantileEstimator, TellsPooledMicrobatchAndChunkStatisticsApart) {
  const std::vector<float> zeros(2);
  const auto first = matrix({{1.0f, 0.5f}, {0.875f, 0.5f}, {0.75f, 0.5f}, {0.625f, 0.5f}});
  const auto second = matrix({{0.5625f, 0.5f}, {0.53125f, 0.5f}});
  const auto estimate = [&](QuantileEstimatorKind kind) {
    const auto estimator = oracle::estimator(kind, 2, 1);
    oracle::observe(*estimator, first, zeros, 1, 0);
    oracle::observe(*estimator, second, zeros, 1, 1);
    return (*estimator->estimate(zeros))[0];
  };
  // r_0: -1/2, -3/8, -1/4, -1/8 and -1/16, -1/32.
  EXPECT_EQ(estimate(QuantileEstimatorKind::exact), -0.125);
  EXPECT_EQ(estimate(QuantileEstimatorKind::microbatch_mean), (-0.25 - 0.03125) / 2);
  EXPECT_EQ(estimate(QuantileEstimatorKind::chunk_mean), (-0.375 - 0.0625) / 2);
}

class EveryEstimator : public ::testing::TestWithParam<QuantileEstimatorKind> {};
INSTANTIATE_TEST_SUITE_P(QuantileEstimator, EveryEstimator, ::testing::ValuesIn(all_estimators));

TEST_P(EveryEstimator, HasNoEstimateWithoutObservations) {
  const std::vector<float> zeros(3);
  const auto estimator = oracle::estimator(GetParam(), 3, 1);
  EXPECT_FALSE(estimator->estimate(zeros));
  oracle::observe(*estimator, matrix({{0.5f, 0.25f, 0}}), zeros, 1);
  EXPECT_EQ(estimator->tokens(), 1);
  EXPECT_TRUE(estimator->estimate(zeros));
  estimator->clear();
  EXPECT_EQ(estimator->tokens(), 0);
  EXPECT_FALSE(estimator->estimate(zeros));
}

TEST_P(EveryEstimator, ForgetsAllThatWasCleared) {
  const std::vector<float> zeros(3);
  const auto used = oracle::estimator(GetParam(), 3, 1);
  const auto fresh = oracle::estimator(GetParam(), 3, 1);
  oracle::observe(*used, matrix({{0.5f, 0.25f, 0}, {0, 1, 0.5f}}), zeros, 1, 2);
  used->clear();
  for (auto* estimator : {used.get(), fresh.get()}) {
    oracle::observe(*estimator, matrix({{0.125f, 0.25f, 0.5f}}), zeros, 1, 1);
  }
  EXPECT_EQ(bits(*used->estimate(zeros)), bits(*fresh->estimate(zeros)));
  StateDict a, b;
  used->save(a, "");
  fresh->save(b, "");
  EXPECT_EQ(a, b);
}

}  // namespace
}  // namespace ballast
