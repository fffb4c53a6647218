#include "sim/text/sparkline.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "sim/text/printable.h"

namespace ballast::sim {
namespace {

std::string spark(const std::vector<double>& values, std::size_t width = 16) {
  return sparkline(std::span<const double>(values), width);
}

TEST(Sparkline, DrawsBarsFromZeroToTheLargest) {
  EXPECT_EQ(spark({8, 7, 4, 1, 0}), "█▇▄▁·");
}

TEST(Sparkline, TellsAnIdleExpertFromAnAlmostIdleOne) {
  EXPECT_EQ(spark({1000, 1, 0}), "█▁·");
}

TEST(Sparkline, TakesMeansWhenThereAreTooManyValues) {
  EXPECT_EQ(spark({8, 8, 4, 4, 0, 0}, 3), "█▄·");
  EXPECT_EQ(spark({0, 16, 8, 0}, 2), "█▄");
}

TEST(Sparkline, IsEmptyWithoutValuesAndFlatWithoutLoad) {
  EXPECT_EQ(spark({}), "");
  EXPECT_EQ(spark({0, 0}), "··");
  EXPECT_EQ(spark({std::nan(""), -1, 2}), "··█");
  EXPECT_EQ(spark({std::numeric_limits<double>::infinity(), 1}), "·█");
}

RC_GTEST_PROP(Sparkline, IsAsWideAsItsValuesUpToTheLimit,
              (const std::vector<std::int64_t>& values)) {
  RC_ASSERT(display_width(sparkline(std::span<const std::int64_t>(values), 10)) ==
            std::min<std::size_t>(values.size(), 10));
}

}  // namespace
}  // namespace ballast::sim
