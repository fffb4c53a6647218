#include "sim/compare/effect_size.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace ballast::sim {
namespace {

using Values = std::vector<std::optional<double>>;

TEST(CliffsDelta, IsTheShareOfPairsAboveLessTheShareBelow) {
  EXPECT_EQ(cliffs_delta(Values{1.0, 2.0}, Values{3.0, 4.0}), 1.0);
  EXPECT_EQ(cliffs_delta(Values{3.0, 4.0}, Values{1.0, 2.0}), -1.0);
  EXPECT_EQ(cliffs_delta(Values{1.0, 2.0}, Values{1.0, 2.0}), 0.0);
  EXPECT_EQ(cliffs_delta(Values{1.0, 3.0}, Values{2.0, 3.0}), 0.25);
  EXPECT_EQ(cliffs_delta(Values{}, Values{1.0}), std::nullopt);
}

TEST(CliffsDelta, AMissingValueIsLargerThanAnyNumberAndEqualToAnother) {
  EXPECT_EQ(cliffs_delta(Values{1e300}, Values{std::nullopt}), 1.0);
  EXPECT_EQ(cliffs_delta(Values{std::nullopt}, Values{5.0}), -1.0);
  EXPECT_EQ(cliffs_delta(Values{std::nullopt}, Values{std::nullopt}), 0.0);
}

RC_GTEST_PROP(CliffsDelta, TurnsItsSignWithTheSamplesAndFollowsTheOrderAlone,
              (const std::vector<int>& first, const std::vector<int>& second)) {
  const auto sample = [](const std::vector<int>& numbers, double factor) {
    Values values;
    for (const int number : numbers) values.push_back(factor * number);
    return values;
  };
  RC_PRE(!first.empty() && !second.empty());
  const double delta = *cliffs_delta(sample(first, 1.0), sample(second, 1.0));
  RC_ASSERT(delta >= -1.0 && delta <= 1.0);
  RC_ASSERT(*cliffs_delta(sample(second, 1.0), sample(first, 1.0)) == -delta);
  RC_ASSERT(*cliffs_delta(sample(first, 8.0), sample(second, 8.0)) == delta);
}

TEST(CliffsDelta, HasItsMagnitudeInWords) {
  EXPECT_EQ(magnitude(0.1), "negligible");
  EXPECT_EQ(magnitude(-0.2), "small");
  EXPECT_EQ(magnitude(0.4), "medium");
  EXPECT_EQ(magnitude(-1.0), "large");
}

}  // namespace
}  // namespace ballast::sim
