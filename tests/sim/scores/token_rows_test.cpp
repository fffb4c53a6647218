#include "sim/scores/token_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "core/random/stream.h"
#include "sim/tokens/make_source.h"

namespace ballast::sim {
namespace {

/// Tokens of a large vocabulary, all equally likely.
TokenBatch batch_of(std::size_t sequences, std::size_t length, TokenSettings settings = {}) {
  settings.sequence_length = length;
  settings.vocabulary = 4096;
  settings.frequency = FrequencyLaw::uniform;
  const auto source = make_source(settings, 3);
  return make_batch(*source, {}, sequences);
}

double share_of(const std::vector<bool>& events) {
  double count = 0.0;
  for (const bool event : events) count += event ? 1.0 : 0.0;
  return count / static_cast<double>(events.size());
}

double tolerance(double p, std::size_t n) {
  return 5 * std::sqrt(p * (1 - p) / static_cast<double>(n));
}

TEST(TokenRows, AreAllDifferentByDefault) {
  const auto rows = token_rows({}, batch_of(20, 50), {}, 1);
  EXPECT_EQ(std::set(rows.keys.begin(), rows.keys.end()).size(), 1000u);
}

TEST(TokenRows, AreTheTokensWithTheProbabilityAskedFor) {
  const auto batch = batch_of(200, 100);
  const auto own = token_rows({.token_driven = 1.0}, batch, {}, 1);
  std::map<std::int32_t, std::uint64_t> row_of;
  for (std::size_t t = 0; t < own.keys.size(); ++t) {
    EXPECT_EQ(row_of.emplace(batch.inputs[t], own.keys[t]).first->second, own.keys[t]);
  }
  const auto some = token_rows({.token_driven = 0.6}, batch, {}, 1);
  std::vector<bool> driven;
  for (std::size_t t = 0; t < some.keys.size(); ++t) driven.push_back(some.keys[t] == own.keys[t]);
  EXPECT_NEAR(share_of(driven), 0.6, tolerance(0.6, driven.size()));
}

TEST(TokenRows, AreKeptAlongASequenceWithTheProbabilityAskedFor) {
  const auto rows = token_rows({.sequence_memory = 0.25}, batch_of(100, 200), {}, 1);
  std::vector<bool> kept_1, kept_2, across;
  for (std::size_t t = 2; t < rows.keys.size(); ++t) {
    if (t % 200 == 0) across.push_back(rows.keys[t] == rows.keys[t - 1]);
    if (t % 200 < 2) continue;
    kept_1.push_back(rows.keys[t] == rows.keys[t - 1]);
    kept_2.push_back(rows.keys[t] == rows.keys[t - 2]);
  }
  EXPECT_NEAR(share_of(kept_1), 0.25, tolerance(0.25, kept_1.size()));
  EXPECT_NEAR(share_of(kept_2), 0.0625, tolerance(0.0625, kept_2.size()));
  EXPECT_EQ(share_of(across), 0.0);
}

TEST(TokenRows, AreOfTheKindsAskedFor) {
  const auto rows =
      token_rows({.aligned_share = 0.1, .nonfinite_share = 0.02}, batch_of(100, 200), {}, 1);
  std::vector<bool> aligned, nonfinite;
  for (const TokenKind kind : rows.kinds) {
    aligned.push_back(kind == TokenKind::aligned);
    nonfinite.push_back(kind == TokenKind::nonfinite);
  }
  EXPECT_NEAR(share_of(aligned), 0.1, tolerance(0.1, aligned.size()));
  EXPECT_NEAR(share_of(nonfinite), 0.02, tolerance(0.02, nonfinite.size()));
}

TEST(TokenRows, DoNotDependOnHowABatchIsSplit) {
  const ScoreSettings settings{.token_driven = 0.3, .sequence_memory = 0.2, .aligned_share = 0.1};
  TokenSettings tokens{.sequence_length = 20};
  const auto source = make_source(tokens, 3);
  const SequenceKey first{.step = 4, .sequence = 6}, later{.step = 4, .sequence = 8};
  const auto all = token_rows(settings, make_batch(*source, first, 4), first, 1);
  const auto part = token_rows(settings, make_batch(*source, later, 2), later, 1);
  EXPECT_TRUE(std::equal(part.keys.begin(), part.keys.end(), all.keys.begin() + 40));
  EXPECT_TRUE(std::equal(part.kinds.begin(), part.kinds.end(), all.kinds.begin() + 40));
}

/// Variance of the count of one event in windows over that of independent tokens (the Fano ratio of
/// the recordings), for bursts of a share p of blocks of L = the window: 1 + p (L - 1).
TEST(TokenRows, AreBurstyAsTheTokensAre) {
  constexpr std::size_t length = 32, blocks = 16, sequences = 400;
  const auto batch =
      batch_of(sequences, length * blocks, {.burst_share = 0.05, .burst_length = length});
  const auto rows = token_rows({.token_driven = 1.0}, batch, {}, 1);
  // Any event that depends on the row alone; here, of probability 1/4.
  double squares = 0.0, sum = 0.0, windows = 0.0;
  for (std::size_t w = 0; w + length <= rows.keys.size(); w += length) {
    double count = 0.0;
    for (std::size_t i = 0; i < length; ++i) count += rows.keys[w + i] % 4 == 0 ? 1.0 : 0.0;
    sum += count;
    squares += count * count;
    windows += 1.0;
  }
  const double mean = sum / windows, variance = squares / windows - mean * mean;
  const double share = mean / length;
  EXPECT_NEAR(variance / (length * share * (1 - share)), 1.0 + 0.05 * (length - 1), 0.5);
}

TEST(DistinctCount, CountsValidValuesOverBatches) {
  DistinctCount count;
  count.add(std::vector<std::uint64_t>{1, 2, 3, 2}, std::vector<std::uint8_t>{1, 1, 0, 1});
  count.add(std::vector<std::uint64_t>{2, 9}, std::vector<std::uint8_t>{1, 1});
  EXPECT_EQ(count.count(), 3);
}

}  // namespace
}  // namespace ballast::sim
