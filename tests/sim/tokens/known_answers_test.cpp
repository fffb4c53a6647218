#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/paths.h"

#include "sim/tokens/make_source.h"

namespace ballast::sim {
namespace {

/// A change of these values changes every run there is: it needs a new version of the program's
/// numerics.
std::vector<std::int32_t> known(TokenSettings settings) {
  settings.sequence_length = 12;
  settings.padding = 0.3;
  const Sequence out = make_source(settings, 20)->sequence({Split::training, 5, 6});
  EXPECT_EQ(out.valid, 11u);
  return out.tokens;
}

TokenSettings mixture(FrequencyLaw law) {
  TokenSettings settings;
  settings.frequency = law;
  return settings;
}

using Tokens = std::vector<std::int32_t>;

TEST(KnownTokens, OfMixtures) {
  EXPECT_EQ(known(mixture(FrequencyLaw::log_normal)),
            (Tokens{178, 195, 193, 175, 85, 219, 255, 123, 248, 87, 107, 2, 0}));
  EXPECT_EQ(known(mixture(FrequencyLaw::zipf)),
            (Tokens{176, 138, 170, 96, 85, 219, 255, 217, 122, 197, 176, 2, 0}));
  EXPECT_EQ(known(mixture(FrequencyLaw::uniform)),
            (Tokens{67, 195, 193, 73, 85, 219, 255, 29, 65, 174, 107, 2, 0}));
}

TEST(KnownTokens, OfAText) {
  TokenSettings settings;
  settings.source = TokenSourceKind::text;
  settings.file = test::source_dir() + "/tests/data/tokens/counting.txt";
  std::string text = ".\nseven zero";
  Tokens expected(text.begin(), text.end());
  expected.push_back(0);
  EXPECT_EQ(known(settings), expected);
}

TEST(KnownTokens, OfAConstant) {
  TokenSettings settings;
  settings.source = TokenSourceKind::constant;
  settings.token = 9;
  EXPECT_EQ(known(settings), (Tokens{9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 0}));
}

}  // namespace
}  // namespace ballast::sim
