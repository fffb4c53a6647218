#include "sim/text/printable.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

namespace ballast::sim {
namespace {

TEST(Printable, LeavesOrdinaryTextAlone) {
  EXPECT_EQ(printable("Größe ▁█ 'x'"), "Größe ▁█ 'x'");
}

TEST(Printable, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(printable("a\nb\x1b[31m\x7f"), "a\\x0ab\\x1b[31m\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");
}

TEST(Printable, EscapesBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
}

RC_GTEST_PROP(Printable, IsAlwaysOneShortLine, (const std::string& text)) {
  const std::string line = printable(text, 20);
  RC_ASSERT(line.size() <= 20u + 12u);
  RC_ASSERT(line.find_first_of(std::string("\n\r\0\x1b", 4)) == std::string::npos);
}

TEST(DisplayWidth, CountsCodePoints) {
  EXPECT_EQ(display_width("Größe▁"), 6u);
}

TEST(Fixed, RoundsAndNeverShowsANegativeZero) {
  EXPECT_EQ(fixed(0.125, 2), "0.12");
  EXPECT_EQ(fixed(-0.001, 2), "0.00");
  EXPECT_EQ(fixed(-1.5, 0), "-2");
  EXPECT_EQ(fixed(std::nan(""), 2), "-");
  EXPECT_EQ(fixed(-std::numeric_limits<double>::infinity(), 2), "-inf");
}

TEST(Wrapped, BreaksAtBlanksAndIndentsEveryLine) {
  EXPECT_EQ(wrapped("one two  three", 9, 2), "  one two\n  three\n");
  EXPECT_EQ(wrapped("unbreakable", 4, 0), "unbreakable\n");
  EXPECT_EQ(wrapped("", 10, 2), "");
}

}  // namespace
}  // namespace ballast::sim
