#include "props/command/laws.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "props/laws/law.h"
#include "props/protocol/json.h"
#include "tests/props/support/fakes.h"
#include "tests/support/paths.h"

namespace ballast::props {
namespace {

std::string said(const std::vector<std::string>& arguments) {
  Law piped = test::law_below("one.a", 3);
  piped.source = "a | b";
  piped.edges = {"tie", "none"};
  const std::vector<Law> all = {piped, test::law_below("two.b", 3)};
  std::ostringstream out, err;
  EXPECT_EQ(laws(all, arguments, out, err), sim::ExitCode::pass);
  return out.str();
}

TEST(LawsCommand, JsonListsEverythingThereIsToSayOfALaw) {
  const Json json = Json::parse(said({"--json", "--laws", "one.*"}));
  EXPECT_EQ(json.dump(),
            R"({"laws":[{"id":"one.a","statement":"A law made up for a test holds.","needs":["route"],)"
            R"("source":"a | b","edges":["none","tie"]}]})");
}

TEST(LawsCommand, MarkdownHasATableAFamily) {
  const std::string text = said({"--markdown"});
  EXPECT_NE(text.find("## one\n"), std::string::npos);
  EXPECT_NE(text.find("| `one.a` | A law made up for a test holds. | route | a \\| b | none; tie |\n"),
            std::string::npos);
  EXPECT_NE(text.find("## two\n"), std::string::npos);
}

TEST(LawsCommand, DocumentOfTheLawsIsWhatTheRegistryGives) {
  std::ifstream file(ballast::test::source_dir() + "/props/laws.md");
  std::stringstream text;
  text << file.rdbuf();
  std::ostringstream out, err;
  laws(all_laws(), std::vector<std::string>{"--markdown"}, out, err);
  EXPECT_EQ(text.str(), out.str()) << "renew it with: ballast laws --markdown > props/laws.md";
}

TEST(LawsCommand, TextCountsTheLaws) {
  EXPECT_NE(said({}).find("\n2 laws\n"), std::string::npos);
}

}  // namespace
}  // namespace ballast::props
