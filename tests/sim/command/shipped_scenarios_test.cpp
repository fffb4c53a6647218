#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "sim/command/run.h"
#include "sim/scenario/scenario_file.h"
#include "sim/simulation/verdict.h"
#include "tests/support/paths.h"

namespace ballast::sim {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool slow_build = true;  // minutes instead of seconds, for code that other tests run too
#else
constexpr bool slow_build = false;
#endif

/// The scenarios of a folder of scenarios/, by their path below it, in order; sweeps have a test of their own.
std::vector<std::string> scenarios_in(const std::string& folder) {
  std::vector<std::string> names;
  const std::string path = test::source_dir() + "/scenarios/" + folder;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".json") && !name.ends_with(".sweep.json")) names.push_back(folder + name);
  }
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> shipped() {
  std::vector<std::string> names = {"quickstart.json", "text.json", "k3/one-layer.json"};
  for (const char* folder : {"collapse/", "skew/"})
    std::ranges::copy(scenarios_in(folder), std::back_inserter(names));
  return names;
}

/// How many seeds each scenario is run with; more than its own for the target scenario-seeds.
std::size_t seeds() {
  const char* given = std::getenv("BALLAST_SEEDS");
  return given == nullptr ? 1 : std::stoul(given);
}

class ShippedScenario : public testing::TestWithParam<std::string> {};

TEST_P(ShippedScenario, KeepsWhatItExpects) {
  if (slow_build) GTEST_SKIP() << "shipped scenarios run in builds without sanitizers";
  for (std::size_t seed = 1; seed <= seeds(); ++seed) {
    const std::vector<std::string> arguments = {test::source_dir() + "/scenarios/" + GetParam(),
                                                "--seed", std::to_string(seed)};
    std::ostringstream out, err;
    EXPECT_EQ(run(arguments, out, err), ExitCode::pass) << "seed " << seed << '\n'
                                                        << out.str() << err.str();
  }
}

/// A scenario that has to fail says which expectation has to trip: "Must trip: dead_experts." ends
/// its description.
std::string must_trip(const Scenario& scenario) {
  const std::string mark = "Must trip: ";
  const auto place = scenario.description.find(mark);
  if (place == std::string::npos) return "";
  const std::string rest = scenario.description.substr(place + mark.size());
  return rest.substr(0, rest.size() - 1);
}

class NegativeScenario : public testing::TestWithParam<std::string> {};

TEST_P(NegativeScenario, FailsByTheExpectationThatItNamesAndNoOther) {
  if (slow_build) GTEST_SKIP() << "shipped scenarios run in builds without sanitizers";
  const std::string file = test::source_dir() + "/scenarios/" + GetParam();
  Scenario scenario = load_scenario(file).common;
  const std::string named = must_trip(scenario);
  ASSERT_FALSE(named.empty());
  for (scenario.seed = 1; scenario.seed <= seeds(); ++scenario.seed) {
    Simulation simulation(scenario, serial_executor());
    while (!simulation.done()) simulation.advance();
    std::vector<std::string> tripped;
    for (const ExpectationOutcome& outcome : judge(simulation)) {
      EXPECT_NE(outcome.verdict, Verdict::unknown);
      if (outcome.verdict != Verdict::fail) continue;
      tripped.push_back(outcome.expectation.collapse ? "collapse" : outcome.expectation.metric);
    }
    EXPECT_EQ(tripped, std::vector<std::string>{named}) << "seed " << scenario.seed;
  }
}

std::string test_name(const testing::TestParamInfo<std::string>& scenario) {
  std::string name = scenario.param;
  for (char& c : name) {
    if (c == '/' || c == '-' || c == '.') c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, ShippedScenario, testing::ValuesIn(shipped()), test_name);
INSTANTIATE_TEST_SUITE_P(All, NegativeScenario, testing::ValuesIn(scenarios_in("negative/")),
                         test_name);

}  // namespace
}  // namespace ballast::sim
