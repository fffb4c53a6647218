#include "sim/command/shrink.h"

#include "sim/text/printable.h"
#include "tests/sim/command/run_command.h"

namespace ballast::sim {
namespace {

using nlohmann::json;
using Names = std::vector<std::string>;

class ShrinkCommand : public RunCommandTest {
 protected:
  void SetUp() override {
    RunCommandTest::SetUp();
    json scenario = tiny();
    scenario["expect"].push_back({{"metric", "loss"}, {"aggregate", "last"}, {"at_most", 1}});
    write("failing.json", scenario.dump());
  }

  static RunOutcome shrink_outcome(const Names& arguments) {
    return command({"shrink", "", shrink_command}, arguments);
  }

  void expect_error(const Names& arguments, ExitCode code, const std::string& part) const {
    const RunOutcome outcome = shrink_outcome(arguments);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  }
};

TEST_F(ShrinkCommand, WritesAScenarioThatFailsTheSameWay) {
  const RunOutcome outcome = shrink_outcome({path("failing.json"), "--out", path("small.json")});
  EXPECT_EQ(outcome.code, ExitCode::pass) << outcome.err;
  EXPECT_NE(outcome.out.find("model.layers"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.err.find("ballast: 1: training.steps 6 -> 1: still fails\n"), std::string::npos)
      << outcome.err;
  const RunOutcome run = run_command({path("small.json"), "--json"});
  EXPECT_EQ(run.code, ExitCode::failed);
  EXPECT_EQ(run.json().at("expectations").at(0).at("metric"), "loss");
  EXPECT_EQ(run.json().at("steps"), 1);
}

TEST_F(ShrinkCommand, PrintsTheScenarioWithoutOutAndTheAttemptsAsJson) {
  const RunOutcome plain = shrink_outcome({path("failing.json")});
  EXPECT_EQ(plain.json().at("model").at("layers"), 1);
  EXPECT_EQ(shrink_outcome({path("failing.json"), "--threads", "2"}).out, plain.out);
  const json report = shrink_outcome({path("failing.json"), "--json"}).json();
  EXPECT_EQ(report.at("scenario"), plain.json());
  EXPECT_EQ(report.at("attempts").size(), report.at("runs"));
  EXPECT_EQ(report.at("attempts").at(0),
            (json{{"field", "training.steps"}, {"from", 6}, {"to", 1}, {"kept", true}}));
}

TEST_F(ShrinkCommand, KeepsWhatAPassingScenarioShows) {
  json scenario = tiny();
  scenario["expect"] = {{{"metric", "e_max_violation:mean"}, {"at_least", 0.1}}};
  write("passing.json", scenario.dump());
  const RunOutcome outcome =
      shrink_outcome({path("passing.json"), "--keep", "pass", "--out", path("small.json")});
  EXPECT_EQ(outcome.code, ExitCode::pass) << outcome.err;
  EXPECT_EQ(run_command({path("small.json")}).code, ExitCode::pass);
  EXPECT_LT(read_json("small.json").at("training").at("steps"), 6);
}

TEST_F(ShrinkCommand, ShrinksOneVariantToAScenarioWithoutVariants) {
  json scenario = tiny_variants();
  scenario["variants"][1]["expect"] = {{{"metric", "loss"}, {"at_most", 1}}};
  write("variants.json", scenario.dump());
  EXPECT_EQ(shrink_outcome({path("variants.json")}).json().at("name"), "quantile");
  expect_error({path("variants.json"), "--keep", "pass"}, ExitCode::usage,
               "name one by --variant: none, quantile");
  expect_error({path("variants.json"), "--variant", "quantil"}, ExitCode::usage,
               "Did you mean 'quantile'?");
  expect_error({path("variants.json"), "--variant", "none"}, ExitCode::bad_input,
               "there is nothing to shrink: no expectation fails");
}

TEST_F(ShrinkCommand, BadInputIsOneLineAndLeavesNothing) {
  expect_error({path("tiny.json"), "--out", path("small.json")}, ExitCode::bad_input,
               "there is nothing to shrink: no expectation fails; --keep pass shrinks");
  expect_error({path("failing.json"), "--keep", "pass"}, ExitCode::bad_input,
               "its expectations do not all hold");
  expect_error({path("failing.json"), "--out", path("tiny.json")}, ExitCode::usage,
               "a file of this name exists");
  expect_error({path("failing.json"), "--out", path("no/where.json")}, ExitCode::usage,
               "it cannot be made");
  expect_error({path("failing.json"), "--keep", "both"}, ExitCode::usage,
               "there are fail and pass");
  expect_error({path("failing.json"), "--set", "training.stps=1"}, ExitCode::usage,
               "did you mean 'training.steps'?");
  expect_error({}, ExitCode::usage, "shrink needs a SCENARIO");
  EXPECT_EQ(entries(), (Names{"failing.json", "tiny.json"}));
}

TEST_F(ShrinkCommand, HelpFitsTheScreen) {
  const RunOutcome help = shrink_outcome({"--help"});
  EXPECT_EQ(help.code, ExitCode::pass);
  std::istringstream lines(help.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80u) << line;
}

}  // namespace
}  // namespace ballast::sim
