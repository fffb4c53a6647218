#include "sim/text/table.h"

#include <gtest/gtest.h>

#include <sstream>

#include "sim/text/printable.h"

namespace ballast::sim {
namespace {

TEST(Table, AlignsColumnsAndLeavesNoBlanksAtLineEnds) {
  Table table({{"layer", Align::left}, {"load"}, {"loads", Align::left}});
  std::ostringstream out;
  table.write(out, std::vector<Row>{{"0", "12.5", "█▁"}, {"blocks.1", "3", ""}});
  EXPECT_EQ(out.str(),
            "layer     load  loads\n"
            "0         12.5  █▁\n"
            "blocks.1     3\n");
}

TEST(Table, WritesRowByRowWithGivenWidths) {
  const Table table({{"step", Align::right, 6}, {"loss", Align::right, 7}});
  EXPECT_EQ(table.header(), "  step     loss\n");
  EXPECT_EQ(table.line({"10", "2.3456"}), "    10   2.3456\n");
  EXPECT_EQ(table.line({"10"}), "    10\n");
}

TEST(Table, CutsTheWidestTextColumnToKeepTheLine) {
  Table table({{"name", Align::left}, {"value"}});
  std::ostringstream out;
  table.write(out, std::vector<Row>{{std::string(100, 'x'), "1"}, {"short", "2"}}, 30);
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 30u) << line;
  EXPECT_NE(out.str().find("x…"), std::string::npos);
}

TEST(Table, NeverCutsANumber) {
  Table table({{"a", Align::right, 2}});
  EXPECT_EQ(table.line({"123456"}), "123456\n");
}

TEST(Table, ColoursOnlyWhenAsked) {
  const Row row = {Cell("0.9", Tone::bad)};
  EXPECT_EQ(Table({{"a", Align::right, 3}}).line(row), "0.9\n");
  EXPECT_EQ(Table({{"a", Align::right, 3}}, true).line(row), "\x1b[31m0.9\x1b[0m\n");
}

TEST(MayColour, IsFalseForAStreamThatIsNoTerminal) {
  const std::ostringstream out;
  EXPECT_FALSE(may_colour(out));
}

}  // namespace
}  // namespace ballast::sim
