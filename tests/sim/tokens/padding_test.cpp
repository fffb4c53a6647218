#include "sim/tokens/padding.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/tokens/make_source.h"

namespace ballast::sim {
namespace {

TokenSettings padded(double share, std::size_t length = 50) {
  TokenSettings settings;
  settings.padding = share;
  settings.sequence_length = length;
  return settings;
}

double mean_valid_share(const TokenSettings& settings, std::size_t sequences) {
  const auto source = make_source(settings, 5);
  double valid = 0.0;
  for (std::size_t i = 0; i < sequences; ++i) {
    valid += static_cast<double>(source->sequence({Split::training, 0, i}).valid);
  }
  return valid / static_cast<double>(sequences * settings.sequence_length);
}

TEST(Padding, HasItsShareOnAverage) {
  for (const double share : {0.01, 0.1, 0.3, 0.5, 0.75, 0.9}) {
    // Lengths spread evenly over at most the whole sequence: a standard deviation of at most 0.29,
    // and four standard errors of 10000 of them.
    EXPECT_NEAR(mean_valid_share(padded(share), 10000), 1.0 - share, 4 * 0.29 / 100) << share;
  }
}

TEST(Padding, LeavesEverySequenceAToken) {
  const auto shortest = make_source(padded(0.9, 3), 5);
  const auto longer = make_source(padded(0.9, 40), 5);
  for (std::size_t i = 0; i < 2000; ++i) {
    EXPECT_EQ(shortest->sequence({Split::training, 0, i}).valid, 1u);
    EXPECT_GE(longer->sequence({Split::training, 0, i}).valid, 1u);
  }
}

TEST(Padding, VariesAsFarAsTheMeanAllows) {
  Stream stream(3);
  std::size_t least = 100, most = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::size_t valid = draw_valid_length(stream, 100, 0.2);
    least = std::min(least, valid);
    most = std::max(most, valid);
  }
  EXPECT_EQ(least, 60u);
  EXPECT_EQ(most, 100u);
}

TEST(Padding, CutsTheEndsOfTheSourcesSequencesAndNothingElse) {
  const auto whole = make_source(padded(0.0), 5);
  const auto cut = make_source(padded(0.4), 5);
  for (std::size_t i = 0; i < 200; ++i) {
    const SequenceKey key{Split::evaluation, 3, i};
    const Sequence all = whole->sequence(key), some = cut->sequence(key);
    ASSERT_EQ(some.tokens.size(), all.tokens.size());
    for (std::size_t t = 0; t < all.tokens.size(); ++t) {
      EXPECT_EQ(some.tokens[t], t <= some.valid ? all.tokens[t] : 0);
    }
  }
}

}  // namespace
}  // namespace ballast::sim
