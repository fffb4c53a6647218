#include "sim/command/options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/usage_error.h"

namespace ballast::sim {
namespace {

namespace po = boost::program_options;

OptionSet example() {
  OptionSet options;
  options.named.add_options()("help,h", "")("json", "")("experts", po::value<int>(), "")(
      "file", po::value<std::vector<std::string>>()->required(), "");
  options.positional.add("file", -1);
  return options;
}

std::string complaint(const std::vector<std::string>& arguments) {
  try {
    parse_options(example(), arguments);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(ParseOptions, TakesNamedAndPositionalValues) {
  const std::vector<std::string> arguments = {"a", "--experts", "8", "b"};
  const auto values = parse_options(example(), arguments);
  EXPECT_EQ(values["experts"].as<int>(), 8);
  EXPECT_EQ(values["file"].as<std::vector<std::string>>(), (std::vector<std::string>{"a", "b"}));
}

TEST(ParseOptions, SuggestsTheNearestOption) {
  EXPECT_NE(complaint({"a", "--expert=8"}).find("Did you mean '--experts'?"), std::string::npos);
}

TEST(ParseOptions, NamesTheOptionThatIsWrong) {
  EXPECT_NE(complaint({"a", "--experts", "many"}).find("--experts"), std::string::npos);
  EXPECT_NE(complaint({"a", "--experts"}).find("--experts"), std::string::npos);
  EXPECT_NE(complaint({"a", "--experts=1", "--experts=2"}).find("experts"), std::string::npos);
  EXPECT_NE(complaint({}).find("file"), std::string::npos);
}

TEST(ParseOptions, HelpNeedsNothingElse) {
  const std::vector<std::string> arguments = {"--help"};
  EXPECT_TRUE(parse_options(example(), arguments).contains("help"));
}

}  // namespace
}  // namespace ballast::sim
