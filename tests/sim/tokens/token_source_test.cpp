#include "sim/tokens/token_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "sim/tokens/make_source.h"
#include "sim/tokens/sequence_stream.h"
#include "tests/support/paths.h"

namespace ballast::sim {

bool operator==(const Sequence& a, const Sequence& b) {
  return a.tokens == b.tokens && a.valid == b.valid;
}

namespace {

constexpr std::size_t length = 12;

TokenSettings settings_of(TokenSourceKind kind, double padding) {
  TokenSettings settings;
  settings.source = kind;
  settings.sequence_length = length;
  settings.padding = padding;
  settings.token = 7;
  settings.file = test::source_dir() + "/scenarios/fields.md";
  return settings;
}

std::vector<TokenSettings> all_settings() {
  std::vector<TokenSettings> all;
  for (const auto kind :
       {TokenSourceKind::mixture, TokenSourceKind::text, TokenSourceKind::constant}) {
    for (const double padding : {0.0, 0.4}) all.push_back(settings_of(kind, padding));
  }
  return all;
}

std::vector<SequenceKey> some_keys() {
  std::vector<SequenceKey> keys;
  for (const Split split : {Split::training, Split::evaluation}) {
    for (std::uint64_t step = 0; step < 5; ++step) {
      for (std::uint64_t sequence = 0; sequence < 20; ++sequence) {
        keys.push_back({split, step, sequence});
      }
    }
  }
  return keys;
}

std::vector<Sequence> draw(const TokenSource& source, const std::vector<SequenceKey>& keys) {
  std::vector<Sequence> out;
  for (const auto& key : keys) out.push_back(source.sequence(key));
  return out;
}

/// An order that has nothing to do with that of the keys: by multiples of a number prime to the
/// count.
std::vector<std::size_t> mixed_order(std::size_t count, std::size_t factor) {
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i * factor % count;
  return order;
}

TEST(TokenSource, MakesAnySequenceAgainInAnyOrderFromAnyThread) {
  const auto keys = some_keys();
  for (const TokenSettings& settings : all_settings()) {
    const auto source = make_source(settings, 3);
    const auto first = draw(*source, keys);
    std::vector<int> differences(2, 0);
    const auto again = [&](std::size_t thread, std::size_t factor) {
      for (const std::size_t i : mixed_order(keys.size(), factor)) {
        if (!(source->sequence(keys[i]) == first[i])) ++differences[thread];
      }
    };
    std::thread other(again, 1, 77);
    again(0, 131);
    other.join();
    EXPECT_EQ(differences, (std::vector<int>{0, 0}));
  }
}

TEST(TokenSource, MakesTheSameSequencesAfterBeingMadeAgain) {
  for (const TokenSettings& settings : all_settings()) {
    EXPECT_EQ(draw(*make_source(settings, 3), some_keys()),
              draw(*make_source(settings, 3), some_keys()));
  }
}

TEST(TokenSource, KeepsTokensInTheVocabularyAndValidLengthsInRange) {
  for (const TokenSettings& settings : all_settings()) {
    const auto source = make_source(settings, 3);
    for (const Sequence& each : draw(*source, some_keys())) {
      ASSERT_EQ(each.tokens.size(), length + 1);
      EXPECT_LE(each.valid, length);
      for (const auto token : each.tokens) {
        EXPECT_GE(token, 0);
        EXPECT_LT(static_cast<std::size_t>(token), source->vocabulary());
      }
    }
  }
}

TEST(TokenSource, GivesOtherTokensForAnotherSeedSplitStepOrSequence) {
  for (const auto kind : {TokenSourceKind::mixture, TokenSourceKind::text}) {
    const auto source = make_source(settings_of(kind, 0.0), 3);
    const Sequence one = source->sequence({Split::training, 4, 5});
    EXPECT_NE(make_source(settings_of(kind, 0.0), 4)->sequence({Split::training, 4, 5}).tokens,
              one.tokens);
    EXPECT_NE(source->sequence({Split::evaluation, 4, 5}).tokens, one.tokens);
    EXPECT_NE(source->sequence({Split::training, 5, 5}).tokens, one.tokens);
    EXPECT_NE(source->sequence({Split::training, 5, 4}).tokens, one.tokens);
    EXPECT_NE(source->sequence({Split::training, 4, 6}).tokens, one.tokens);
  }
}

/// Inputs of a global batch of 24 sequences, split over ranks and micro-batches.
std::vector<std::int32_t> global_inputs(const TokenSource& source, std::size_t ranks,
                                        std::size_t micro_batches) {
  const std::size_t sequences = 24 / (ranks * micro_batches);
  std::vector<std::int32_t> all;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (std::size_t micro = 0; micro < micro_batches; ++micro) {
      const std::uint64_t first = (rank * micro_batches + micro) * sequences;
      const TokenBatch batch = make_batch(source, {Split::training, 9, first}, sequences);
      all.insert(all.end(), batch.inputs.begin(), batch.inputs.end());
    }
  }
  return all;
}

TEST(MakeBatch, GivesTheSameTokensHoweverAStepIsSplit) {
  for (const TokenSettings& settings : all_settings()) {
    const auto source = make_source(settings, 8);
    const auto whole = global_inputs(*source, 1, 1);
    EXPECT_EQ(whole.size(), 24 * length);
    EXPECT_EQ(global_inputs(*source, 2, 3), whole);
    EXPECT_EQ(global_inputs(*source, 4, 6), whole);
    EXPECT_EQ(global_inputs(*source, 1, 8), whole);
  }
}

TEST(MakeBatch, PairsEachInputWithTheNextToken) {
  const auto source = make_source(settings_of(TokenSourceKind::mixture, 0.4), 8);
  const TokenBatch batch = make_batch(*source, {Split::evaluation, 2, 3}, 4);
  EXPECT_EQ(batch.sequences, 4u);
  EXPECT_EQ(batch.length, length);
  for (std::size_t i = 0; i < 4; ++i) {
    const Sequence one = source->sequence({Split::evaluation, 2, 3 + i});
    for (std::size_t t = 0; t < length; ++t) {
      EXPECT_EQ(batch.inputs[i * length + t], one.tokens[t]);
      EXPECT_EQ(batch.targets[i * length + t], one.tokens[t + 1]);
      EXPECT_EQ(batch.valid[i * length + t], t < one.valid ? 1 : 0);
    }
  }
}

TEST(MakeBatch, OfNothingIsEmpty) {
  const auto source = make_source(settings_of(TokenSourceKind::constant, 0.0), 8);
  EXPECT_TRUE(make_batch(*source, {}, 0).inputs.empty());
}

TEST(ConstantSource, RepeatsItsToken) {
  const auto source = make_source(settings_of(TokenSourceKind::constant, 0.0), 8);
  EXPECT_EQ(source->sequence({}).tokens, std::vector<std::int32_t>(length + 1, 7));
  EXPECT_EQ(source->vocabulary(), 256u);
}

}  // namespace
}  // namespace ballast::sim
