#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "props/command/check.h"
#include "props/laws/law.h"
#include "props/protocol/json.h"
#include "tests/props/support/temporary_folder.h"
#include "tests/support/paths.h"

namespace ballast::props {
namespace {

struct Said {
  sim::ExitCode code;
  std::string out;
};

Said check_all(std::vector<std::string> arguments) {
  const test::TemporaryFolder folder;
  arguments.push_back("--failures=" + (folder.path() / "failures").string());
  std::ostringstream out, err;
  const auto code = check(all_laws(), arguments, out, err);
  return {code, out.str()};
}

TEST(BuiltInStack, KeepsEveryLaw) {
  const Said said = check_all({"--cases", "200"});
  EXPECT_EQ(said.code, sim::ExitCode::pass) << said.out;
}

TEST(PythonExample, KeepsEveryLawThatItsCapabilitiesAllow) {
  const std::string example = ballast::test::source_dir() + "/props/examples/router_subject.py";
  const Said said = check_all({"--cases", "40", "--subject", "python3 '" + example + "'", "--json"});
  // With so few cases some edges may not be met; no law may be broken, and no case unexplained.
  EXPECT_NE(said.code, sim::ExitCode::failed) << said.out;
  const Json report = Json::parse(said.out);
  int passed = 0;
  for (const auto& law : report.at("laws")) {
    EXPECT_NE(law.at("verdict"), "fail") << law.dump(2);
    passed += law.at("verdict") == "pass" ? 1 : 0;
  }
  EXPECT_GT(passed, 90);
}

}  // namespace
}  // namespace ballast::props
