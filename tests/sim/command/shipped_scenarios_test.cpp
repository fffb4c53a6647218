#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "sim/command/run.h"
#include "tests/support/paths.h"

namespace ballast::sim {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool slow_build = true;  // minutes instead of seconds, for code that other tests run too
#else
constexpr bool slow_build = false;
#endif

class ShippedScenario : public testing::TestWithParam<std::string> {};

TEST_P(ShippedScenario, KeepsWhatItExpects) {
  if (slow_build) GTEST_SKIP() << "shipped scenarios run in builds without sanitizers";
  const std::vector<std::string> arguments = {test::source_dir() + "/scenarios/" + GetParam()};
  std::ostringstream out, err;
  EXPECT_EQ(run(arguments, out, err), ExitCode::pass) << out.str() << err.str();
}

std::string test_name(const testing::TestParamInfo<std::string>& scenario) {
  std::string name = scenario.param;
  for (char& c : name) {
    if (c == '/' || c == '-' || c == '.') c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, ShippedScenario,
                         testing::Values("quickstart.json", "text.json", "k3/one-layer.json",
                                         "collapse/collapse-emerges.json"),
                         test_name);

}  // namespace
}  // namespace ballast::sim
