#include "sim/recordings/line_reader.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/input_error.h"
#include "tests/sim/recordings/temporary_file.h"
#include "tests/support/paths.h"

namespace ballast::sim {
namespace {

std::vector<std::string> lines_of(const std::string& content, std::size_t peeked = 0) {
  const TemporaryFile file(content);
  LineReader reader(file.path());
  EXPECT_LE(reader.peek(peeked).size(), peeked);
  std::vector<std::string> lines;
  for (Line line; reader.next(line);) {
    lines.push_back(line.text);
    EXPECT_EQ(line.number, static_cast<std::int64_t>(lines.size()));
  }
  return lines;
}

TEST(LineReader, GivesLinesWithoutTheirEnds) {
  EXPECT_EQ(lines_of("a\r\n\nb"), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(lines_of("a\n"), (std::vector<std::string>{"a"}));
  EXPECT_EQ(lines_of(""), std::vector<std::string>{});
}

TEST(LineReader, TellsALastLineThatDoesNotEnd) {
  const TemporaryFile file("a\nb");
  LineReader reader(file.path());
  Line line;
  ASSERT_TRUE(reader.next(line));
  EXPECT_TRUE(line.ended);
  ASSERT_TRUE(reader.next(line));
  EXPECT_FALSE(line.ended);
  EXPECT_FALSE(reader.next(line));
}

RC_GTEST_PROP(LineReader, GivesEveryByteBackWhateverIsPeeked,
              (std::vector<std::uint16_t> lengths)) {
  std::string content = "\n";
  std::vector<std::string> expected = {""};
  for (const std::uint16_t length : lengths) {
    expected.emplace_back(length, 'x');  // up to the size of a block
    content += expected.back() + '\n';
  }
  RC_ASSERT(lines_of(content, *rc::gen::inRange<std::size_t>(0, 20)) == expected);
}

TEST(LineReader, RefusesADirectoryAndWhatIsNotThere) {
  EXPECT_THROW(LineReader(test::source_dir()), InputError);
  EXPECT_THROW(LineReader("no/such/file"), InputError);
}

}  // namespace
}  // namespace ballast::sim
