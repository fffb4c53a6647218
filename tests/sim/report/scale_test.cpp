#include "sim/report/scale.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace ballast::sim {
namespace {

TEST(RoundTicks, EndAtTheLargestNumbersThereAre) {
  constexpr double largest = std::numeric_limits<double>::max();
  for (const double low : {0.0, -largest}) {
    const auto ticks = round_ticks(low, largest, 5);
    EXPECT_GE(ticks.size(), 2u);
    EXPECT_LE(ticks.size(), 12u);
    EXPECT_LE(ticks.back(), largest);
  }
}

TEST(KeptPoints, KeepTheExtremesTheEndsAndTheGapsOfLongLines) {
  std::vector<double> x, y;
  std::uint64_t draw = 7;
  for (int i = 0; i < 20'000; ++i) {
    draw = draw * 6364136223846793005u + 1442695040888963407u;
    x.push_back(i);
    y.push_back(i == 7777 ? std::numeric_limits<double>::quiet_NaN()
                          : static_cast<double>(draw >> 40));
  }
  const auto kept = kept_points(x, y, 100);
  EXPECT_LE(kept.size(), 6 * 100u);
  EXPECT_TRUE(std::ranges::is_sorted(kept));
  EXPECT_EQ(kept.front(), 0u);
  EXPECT_EQ(kept.back(), x.size() - 1);
  EXPECT_TRUE(std::ranges::count(kept, 7777u) == 1);
  // Of every hundredth of the line the smallest and the largest: the columns are 199.99 wide.
  for (std::size_t begin = 0; begin + 200 < x.size(); begin += 200) {
    const double largest = *std::max_element(y.begin() + static_cast<std::ptrdiff_t>(begin) + 1,
                                             y.begin() + static_cast<std::ptrdiff_t>(begin) + 199);
    const bool is_kept = std::ranges::any_of(
        kept, [&](std::size_t i) { return i + 200 > begin && i < begin + 400 && y[i] >= largest; });
    EXPECT_TRUE(is_kept || std::isnan(largest)) << begin;
  }
}

TEST(KeptPoints, ShortLinesStayWhole) {
  const std::vector<double> x = {1, 2, 3, 9}, y = {5, 5, 5, 5};
  EXPECT_EQ(kept_points(x, y, 1), (std::vector<std::size_t>{0, 1, 2, 3}));
  EXPECT_TRUE(kept_points({}, {}, 10).empty());
}

TEST(RoundTicks, AreRoundEvenlyApartAndWithinTheRange) {
  EXPECT_EQ(round_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(round_ticks(-1, 1, 4), (std::vector<double>{-1, -0.5, 0, 0.5, 1}));
  EXPECT_EQ(round_ticks(3, 3, 5), (std::vector<double>{3}));
  for (const double size : {1e-9, 0.3, 17.0, 12345.0, 7e200}) {
    const auto ticks = round_ticks(-size, 2 * size, 6);
    EXPECT_GE(ticks.size(), 3u) << size;
    EXPECT_LE(ticks.size(), 8u) << size;
    EXPECT_GE(ticks.front(), -size * (1 + 1e-9));
    EXPECT_LE(ticks.back(), 2 * size * (1 + 1e-9));
  }
}

}  // namespace
}  // namespace ballast::sim
