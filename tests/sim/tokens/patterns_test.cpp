#include "sim/tokens/patterns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/tokens/make_source.h"
#include "sim/tokens/mixture.h"

namespace ballast::sim {
namespace {

TokenSettings large_vocabulary(std::size_t length) {
  TokenSettings settings;
  settings.sequence_length = length;
  settings.vocabulary = 10'000;
  settings.frequency = FrequencyLaw::uniform;
  return settings;
}

TEST(Bursts, FillTheShareOfBlocksAskedFor) {
  TokenSettings settings = large_vocabulary(1000);
  settings.burst_share = 0.3;
  settings.burst_length = 10;
  const auto source = make_source(settings, 1);
  double bursts = 0.0, blocks = 0.0;
  for (std::uint64_t s = 0; s < 40; ++s) {
    const auto tokens = source->sequence({.sequence = s}).tokens;
    for (std::size_t first = 0; first + 10 <= 1000; first += 10) {
      const auto block = std::span(tokens).subspan(first, 10);
      bursts +=
          std::ranges::all_of(block, [&](auto token) { return token == block[0]; }) ? 1.0 : 0.0;
      blocks += 1.0;
    }
  }
  EXPECT_NEAR(bursts / blocks, 0.3, 5 * std::sqrt(0.3 * 0.7 / blocks));
}

TEST(RepeatedText, RepeatsAfterThePeriodAndBeginsAsBefore) {
  TokenSettings settings = large_vocabulary(50);
  const auto plain = make_source(settings, 1)->sequence({}).tokens;
  settings.repeat_period = 7;
  const auto repeated = make_source(settings, 1)->sequence({}).tokens;
  ASSERT_EQ(repeated.size(), plain.size());
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(repeated[i], plain[i % 7]) << i;
}

TEST(SynchronisedStart, GivesAllSequencesTheSameTokensUntilItEnds) {
  TokenSettings settings = large_vocabulary(20);
  settings.synchronised_steps = 12;
  const auto source = make_source(settings, 1);
  const auto at = [&](std::uint64_t step, std::uint64_t sequence) {
    return source->sequence({.step = step, .sequence = sequence}).tokens;
  };
  EXPECT_EQ(at(0, 0), at(0, 5));
  EXPECT_EQ(at(11, 0), at(11, 5));
  EXPECT_NE(at(10, 0), at(11, 0));
  EXPECT_NE(at(12, 0), at(12, 5));
  const auto evaluation = [&](std::uint64_t sequence) {
    return source->sequence({.split = Split::evaluation, .sequence = sequence}).tokens;
  };
  EXPECT_NE(evaluation(0), evaluation(1));
}

TEST(Mixture, TakesTheShareOfSequencesFromOtherTopicsThatAShiftAsksFor) {
  TokenSettings settings;
  settings.topics = 4;
  settings.shift = 0.4;
  const MixtureSource source(settings, 1);
  double shifted = 0.0;
  constexpr std::uint64_t sequences = 4000;
  for (std::uint64_t s = 0; s < sequences; ++s) {
    const auto topics = source.topics_of({.sequence = s});
    const bool other = topics.front() >= 4;
    EXPECT_TRUE(
        std::ranges::all_of(topics, [&](std::size_t topic) { return (topic >= 4) == other; }));
    shifted += other ? 1.0 : 0.0;
  }
  EXPECT_NEAR(shifted / sequences, 0.4, 5 * std::sqrt(0.24 / sequences));
}

TEST(Mixture, KeepsAShareOfTheSequencesToTheTopicOfTheirRank) {
  TokenSettings settings;
  settings.topics = 4;
  settings.topic_persistence = 0.5;
  settings.rank_skew = 0.7;
  const MixtureSource source(settings, 1);
  double kept = 0.0;
  constexpr std::uint64_t sequences = 4000;
  for (std::uint64_t s = 0; s < sequences; ++s) {
    const auto topics = source.topics_of({.sequence = s, .rank = 6});
    kept += std::ranges::all_of(topics, [](std::size_t topic) { return topic == 2; }) ? 1.0 : 0.0;
  }
  EXPECT_NEAR(kept / sequences, 0.7, 5 * std::sqrt(0.21 / sequences));
}

}  // namespace
}  // namespace ballast::sim
