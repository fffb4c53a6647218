#include "core/balancers/pooled_quantile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "core/balancers/bracketed_quantile.h"
#include "core/balancers/histogram_counts.h"
#include "core/balancers/order_statistics.h"
#include "tests/core/support/bits.h"
#include "tests/core/support/observed_tokens.h"

namespace ballast {
namespace {

using test::Tokens;

/// The order statistics of all experts, by three rounds over parts that only exchange counts.
std::vector<float> in_parts(const Tokens& tokens, std::int64_t position, std::size_t part) {
  std::vector<std::size_t> experts;
  for (std::size_t j = 0; j < tokens.scores.cols(); ++j) experts.push_back(j);
  const std::vector<std::int64_t> positions(experts.size(), position);
  PooledQuantile pooled(experts, positions);
  while (!pooled.done()) {
    for (std::size_t first = 0; first < tokens.scores.rows(); first += part) {
      PooledQuantile other = pooled.fork();
      other.observe(tokens.tile(first, std::min(part, tokens.scores.rows() - first)));
      pooled.merge(other);
    }
    pooled.end_round();
  }
  return pooled.values();
}

TEST(PooledQuantile, IsTheOrderStatisticOfThePooledTokensHoweverTheyAreSplit) {
  for (const double step : {0.125, 1e-9}) {
    const Tokens tokens(500, 7, step, 1);
    const auto required = tokens.required();
    for (const std::size_t position :
         {std::size_t{0}, std::size_t{17}, std::size_t{250}, required.rows() - 1}) {
      const auto right = oracle::bits(column_order_statistics(required, position));
      for (const std::size_t part : {500, 499, 64, 1}) {
        EXPECT_EQ(oracle::bits(in_parts(tokens, static_cast<std::int64_t>(position), part)), right)
            << position;
      }
    }
  }
}

TEST(PooledQuantile, RefusesAPositionBehindTheLastValue) {
  const Tokens tokens(10, 2, 0.1, 2);
  EXPECT_THROW(in_parts(tokens, 10, 10), std::invalid_argument);
}

TEST(BracketedQuantile, IsTheOrderStatisticWhereTheBracketHoldsItAndSaysWhereNot) {
  const Tokens tokens(3000, 5, 1e-9, 3);
  const auto required = tokens.required();
  const auto right = column_order_statistics(required, 700);
  Brackets brackets{right, right, 0};
  brackets.low[1] = right[1] - 0.1f;
  brackets.high[2] = right[2] + 0.1f;
  brackets.low[3] = brackets.high[3] = std::nextafter(right[3], 10.0f);
  brackets.low[4] = brackets.high[4] = std::nextafter(right[4], -10.0f);
  for (const std::size_t part : {3000, 100, 7}) {
    BracketedQuantile whole(brackets);
    for (std::size_t first = 0; first < 3000; first += part) {
      BracketedQuantile other = whole.fork();
      other.observe(tokens.tile(first, std::min(part, 3000 - first)));
      whole.merge(other);
    }
    EXPECT_EQ(whole.tokens(), static_cast<std::int64_t>(required.rows()));
    for (std::size_t j = 0; j < 3; ++j) {
      ASSERT_TRUE(whole.has(j, 700));
      EXPECT_EQ(whole.value(j, 700), right[j]);
      EXPECT_EQ(whole.value(j, 700), right[j]) << "a second time";
    }
    EXPECT_FALSE(whole.has(3, 700));
    EXPECT_FALSE(whole.has(4, 700));
  }
}

TEST(BracketedQuantile, FindsBracketsInASampleThatHoldWhatIsWanted) {
  const Tokens tokens(20000, 6, 1e-9, 4);
  const auto required = tokens.required();
  const auto all = static_cast<std::int64_t>(required.rows());
  for (const std::int64_t position : {std::int64_t{0}, all / 50, all / 2, all - 1}) {
    BracketedQuantile sample(open_brackets(6));
    sample.observe(tokens.tile(1000, 1000));
    const auto brackets = sample.narrowed(position, all, 5.0, 20000);
    ASSERT_TRUE(brackets.has_value());
    BracketedQuantile found(*brackets);
    found.observe(tokens.tile());
    const auto right = column_order_statistics(required, static_cast<std::size_t>(position));
    for (std::size_t j = 0; j < 6; ++j) {
      ASSERT_TRUE(found.has(j, position)) << position;
      EXPECT_EQ(found.value(j, position), right[j]);
    }
  }
}

TEST(BracketedQuantile, NarrowsBracketsThatSamplesBeforeHaveFound) {
  const Tokens tokens(20000, 6, 1e-9, 4);
  const auto required = tokens.required();
  const auto all = static_cast<std::int64_t>(required.rows());
  for (const std::int64_t position : {all / 50, all / 2, all - all / 10}) {
    BracketedQuantile first(open_brackets(6));
    first.observe(tokens.tile(0, 200));
    const auto found_wide = first.narrowed(position, all, 8.0, 2000);
    ASSERT_TRUE(found_wide.has_value());
    const Brackets& wide = *found_wide;
    EXPECT_LT(wide.expected, 2000u);  // of the second sample's, not of all
    BracketedQuantile second(wide);
    second.observe(tokens.tile(200, 2000));
    const auto found_narrow = second.narrowed(position, all, 5.0, 20000);
    ASSERT_TRUE(found_narrow.has_value());
    const Brackets& narrow = *found_narrow;
    BracketedQuantile found(narrow);
    found.observe(tokens.tile());
    const auto right = column_order_statistics(required, static_cast<std::size_t>(position));
    for (std::size_t j = 0; j < 6; ++j) {
      EXPECT_GE(narrow.low[j], wide.low[j]);
      EXPECT_LE(narrow.high[j], wide.high[j]);
      ASSERT_TRUE(found.has(j, position)) << position;
      EXPECT_EQ(found.value(j, position), right[j]);
    }
  }
}

TEST(BracketedQuantile, NarrowsNothingWhereAnEndIsOutsideOrThereIsNoSample) {
  const Tokens tokens(1000, 3, 1e-9, 4);
  const auto middle = column_order_statistics(tokens.required(), 450);
  const auto narrowed = [&](const Brackets& brackets, std::int64_t position) {
    BracketedQuantile sample(brackets);
    sample.observe(tokens.tile());
    return sample.narrowed(position, 1000, 5.0, 1000);
  };
  EXPECT_TRUE(narrowed(open_brackets(3), 500).has_value());
  Brackets wrong = open_brackets(3);
  wrong.low[0] = 2.0f;  // all are below
  EXPECT_FALSE(narrowed(wrong, 500).has_value());
  wrong = open_brackets(3);
  wrong.high[1] = -2.0f;  // all are above
  EXPECT_FALSE(narrowed(wrong, 500).has_value());
  wrong = open_brackets(3);
  wrong.high[2] = middle[2];  // between both ends
  EXPECT_FALSE(narrowed(wrong, 500).has_value());
  wrong = open_brackets(3);
  wrong.low[2] = middle[2];
  EXPECT_FALSE(narrowed(wrong, 500).has_value());
  EXPECT_TRUE(narrowed(wrong, 900).has_value());
  EXPECT_FALSE(BracketedQuantile(open_brackets(3)).narrowed(500, 1000, 5.0, 1000).has_value());
}

TEST(BracketedQuantile, MakesNoMoreRoomThanForAllWhereASampleIsSmall) {
  const Tokens tokens(4, 3, 1e-9, 4);
  BracketedQuantile sample(open_brackets(3));
  sample.observe(tokens.tile());
  const auto brackets = sample.narrowed(90, 1000, 5.0, 1000);
  ASSERT_TRUE(brackets.has_value());
  EXPECT_EQ(brackets->expected, 1000u);
}

/// Counts `[experts][bins]` by the definition.
std::vector<std::vector<std::int64_t>> plainly_counted(const Matrix<float>& required,
                                                       const HistogramRange& range) {
  std::vector<std::vector<std::int64_t>> counts(required.cols(),
                                                std::vector<std::int64_t>(range.bins()));
  for (std::size_t i = 0; i < required.rows(); ++i) {
    for (std::size_t j = 0; j < required.cols(); ++j) ++counts[j][range.bin(required(i, j))];
  }
  return counts;
}

TEST(HistogramCounts, AreThoseOfTheDefinitionHoweverTheTokensAreSplit) {
  const Tokens tokens(70000, 3, 1e-9, 5);  // more than fit into the near counters at once
  const std::vector<float> biases = {-0.1f, 0.0f, 0.2f};
  const HistogramRange range(biases, 50);
  const auto required = tokens.required();
  const auto total = static_cast<std::int64_t>(required.rows());
  const auto counts = plainly_counted(required, range);
  for (const std::size_t part : {70000, 40000, 1000}) {
    HistogramCounts whole(3, range);
    for (std::size_t first = 0; first < 70000; first += part) {
      HistogramCounts other = whole.fork();
      other.observe(tokens.tile(first, std::min(part, 70000 - first)));
      whole.merge(other);
    }
    EXPECT_EQ(whole.tokens(), total);
    EXPECT_EQ(whole.clamped(), (ClampedCounts{}));
    const auto estimate = whole.estimate(1);
    for (std::size_t j = 0; j < 3; ++j) {
      EXPECT_EQ(whole.counts(j), counts[j]) << part;
      EXPECT_EQ(estimate[j], histogram_quantile(range, counts[j], total, 1, 3)) << part;
    }
  }
}

}  // namespace
}  // namespace ballast
