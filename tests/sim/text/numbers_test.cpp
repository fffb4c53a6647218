#include "sim/text/numbers.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace ballast::sim {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(Compact, GivesUpDigitsBeforeItGivesUpWidth) {
  EXPECT_EQ(compact(3.14159, 7, 3), "3.142");
  EXPECT_EQ(compact(123.456, 5, 3), "123.5");
  EXPECT_EQ(compact(12345.6, 5, 3), "12346");
  EXPECT_EQ(compact(5.636e12, 7, 3), "5.6e+12");
  EXPECT_EQ(compact(5.636e12, 5, 3), "6e+12");
  EXPECT_EQ(compact(-0.0001, 5, 2), "0.00");
  EXPECT_EQ(compact(std::nan(""), 5, 2), "nan");
  EXPECT_EQ(compact(-infinity, 5, 2), "-inf");
}

RC_GTEST_PROP(Compact, KeepsItsWidthAndItsValue, (double value)) {
  const std::string text = compact(value, 7, 3);
  RC_ASSERT(text.size() <= 7u);
  // Seven characters hold at least one digit, of a number below 0.0005 none.
  RC_ASSERT(std::abs(std::stod(text) - value) <= 0.5 * std::abs(value) + 0.0005);
}

TEST(Shortest, HasNoNeedlessZeros) {
  EXPECT_EQ(shortest(2.0), "2");
  EXPECT_EQ(shortest(0.9), "0.9");
  EXPECT_EQ(shortest(1e30), "1e+30");
  EXPECT_EQ(shortest(-0.0), "0");
}

RC_GTEST_PROP(Shortest, ReadsAsTheSameNumber, (double value)) {
  RC_ASSERT(std::stod(shortest(value)) == value);
}

TEST(Significant, CutsDigitsThatSayLittle) {
  EXPECT_EQ(significant(1.52334, 5), "1.5233");
  EXPECT_EQ(significant(2.0, 5), "2");
  EXPECT_EQ(significant(std::nan(""), 5), "nan");
}

TEST(InWords, SaysCountsAsPeopleDo) {
  EXPECT_EQ(in_words(0), "0");
  EXPECT_EQ(in_words(999), "999");
  EXPECT_EQ(in_words(2391), "2.4 thousand");
  EXPECT_EQ(in_words(254'000), "254 thousand");
  EXPECT_EQ(in_words(999'600), "1.0 million");
  EXPECT_EQ(in_words(2'800'000'000'000), "2.8 trillion");
  EXPECT_EQ(counted(1, "layer"), "1 layer");
  EXPECT_EQ(counted(2, "layer"), "2 layers");
}

}  // namespace
}  // namespace ballast::sim
