#include "core/balancers/windowed_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/balancers/histogram_counts.h"
#include "tests/core/support/bits.h"
#include "tests/core/support/observed_tokens.h"

namespace ballast {
namespace {

using test::Tokens;

constexpr std::size_t experts = 5;

WindowedHistogram observed(const WindowedHistogram& windows, const Tokens& tokens,
                           std::size_t part) {
  WindowedHistogram whole = windows.fork();
  for (std::size_t first = 0; first < tokens.scores.rows(); first += part) {
    WindowedHistogram other = windows.fork();
    other.observe(tokens.tile(first, std::min(part, tokens.scores.rows() - first)));
    whole.merge(other);
  }
  return whole;
}

/// The bin that decides, from counts of all bins.
std::size_t deciding_bin(const std::vector<std::int64_t>& counts, std::int64_t rank) {
  std::size_t bin = 0;
  for (std::int64_t upto = counts[0]; upto < rank; upto += counts[++bin]) {
  }
  return bin;
}

TEST(WindowedHistogram, HasTheEstimatesOfAllBinsWhereTheWindowHoldsTheBinThatDecides) {
  Stream stream(11);
  std::size_t inside = 0, outside = 0;
  for (const std::size_t bins : {2, 7, 1000, 100000}) {
    for (const double step : {1e-9, 0.125}) {
      const Tokens tokens(3000, experts, step, bins);
      const HistogramRange range(std::vector<float>{-0.2f, 0.31f}, bins);
      HistogramCounts all(experts, range);
      all.observe(tokens.tile());
      for (std::size_t top_k = 1; top_k < experts; ++top_k) {
        const auto right = all.estimate(top_k);
        const QuantileRank rank(all.tokens(), top_k, experts);
        Brackets brackets = open_brackets(experts);
        for (std::size_t j = 0; j < experts; ++j) {
          const double at = right[j] + 0.05 * (uniform(stream) - 0.5), width = uniform(stream);
          brackets.low[j] = static_cast<float>(at - 0.03 * width);
          brackets.high[j] = static_cast<float>(at + 0.03 * width);
        }
        for (const std::size_t part : {3000, 1024, 7}) {
          const auto found = observed(WindowedHistogram(range, brackets), tokens, part);
          EXPECT_EQ(found.tokens(), all.tokens());
          for (std::size_t j = 0; j < experts; ++j) {
            const auto bin = deciding_bin(all.counts(j), rank.rank);
            const bool holds =
                range.bin(brackets.low[j]) <= bin && bin <= range.bin(brackets.high[j]);
            const auto estimate = found.estimate(j, top_k);
            ASSERT_EQ(estimate.has_value(), holds) << "top-" << top_k << ", expert " << j;
            if (holds) {
              EXPECT_EQ(*estimate, right[j]);
            }
            ++(holds ? inside : outside);
          }
        }
      }
    }
  }
  EXPECT_GT(inside, 300u);
  EXPECT_GT(outside, 100u);
}

TEST(WindowedHistogram, OfEverythingHasAllEstimatesAndValues) {
  const Tokens tokens(1500, experts, 0.01, 3);
  const HistogramRange range(std::vector<float>{0.0f, 0.25f}, 100);
  HistogramCounts all(experts, range);
  all.observe(tokens.tile());
  const auto found = observed(WindowedHistogram(range, open_brackets(experts)), tokens, 400);
  EXPECT_EQ(found.inside(), static_cast<std::int64_t>(experts) * found.tokens());
  for (std::size_t top_k = 1; top_k < experts; ++top_k)
    for (std::size_t j = 0; j < experts; ++j)
      EXPECT_EQ(found.estimate(j, top_k), all.estimate(top_k)[j]);
}

}  // namespace
}  // namespace ballast
