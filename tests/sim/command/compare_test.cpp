#include "sim/command/compare.h"

#include "sim/command/sweep.h"
#include "sim/text/printable.h"
#include "tests/sim/command/run_command.h"

namespace ballast::sim {
namespace {

using nlohmann::json;
using Names = std::vector<std::string>;

class CompareCommand : public RunCommandTest {
 protected:
  static RunOutcome compare_outcome(const Names& arguments) {
    return command({"compare", "", compare}, arguments);
  }

  /// A sweep of tiny.json over top_k into this folder.
  void sweep_to(const std::string& name, const Names& values, const Names& arguments = {}) const {
    json file = {{"ballast_sweep", 1},
                 {"name", name},
                 {"seeds", 3},
                 {"base", "tiny.json"},
                 {"axes", {{{"field", "model.top_k"}, {"values", json::array()}}}}};
    for (const std::string& value : values) file["axes"][0]["values"].push_back(json::parse(value));
    write(name + ".json", file.dump());
    Names words = {path(name + ".json"), "--out", path(name)};
    words.insert(words.end(), arguments.begin(), arguments.end());
    ASSERT_EQ(command({"sweep", "", sweep}, words).code, ExitCode::pass);
  }

  static json column(const json& comparison, const std::string& name) {
    for (const json& each : comparison.at("columns")) {
      if (each.at("column") == name) return each;
    }
    return nullptr;
  }
};

TEST_F(CompareCommand, ASweepIsEqualToItself) {
  sweep_to("a", {"1", "2"});
  const RunOutcome outcome = compare_outcome({path("a"), path("a"), "--json"});
  EXPECT_EQ(outcome.code, ExitCode::pass);
  for (const json& each : outcome.json().at("columns")) {
    EXPECT_EQ(each.at("mean_delta"), 0.0);
    EXPECT_EQ(each.at("lower"), 0);
    EXPECT_EQ(each.at("higher"), 0);
  }
}

TEST_F(CompareCommand, MatchesPointsByTheirAxesInAnyOrder) {
  sweep_to("a", {"1", "2", "3"});
  sweep_to("b", {"4", "2.0", "1"}, {"--set", "training.optimizer.learning_rate=0"});
  const json both = compare_outcome({path("a"), path("b"), "--json"}).json();
  ASSERT_EQ(both.at("points").size(), 2u);
  EXPECT_EQ(both.at("a").at("only"), 1);
  EXPECT_EQ(both.at("b").at("only"), 1);
  // A model that learns has a lower loss than one that does not.
  EXPECT_EQ(column(both, "loss").at("higher"), 2);
  EXPECT_GT(column(both, "loss").at("mean_delta"), 0.5);
  EXPECT_EQ(both.at("points").at(0).at("columns").at("loss").at("magnitude"), "large");
}

TEST_F(CompareCommand, ACollapseThatNeverComesIsLaterThanAnyAndOneThatCannotBeToldIsLeftOut) {
  json file = {{"ballast_sweep", 1},
               {"seeds", 2},
               {"base",
                {{"ballast", 1},
                 {"mode", "router_only"},
                 {"model", {{"routed_experts", 16}}},
                 {"balancer", {{"kind", "none"}}},
                 {"training", {{"steps", 12}}}}},
               {"axes", {{{"field", "training.sequences"}, {"values", {8, 1}}}}}};
  file["base"]["tokens"] = {{"sequence_length", 32}};
  file["base"]["scores"] = {{"aligned_share", 1}};
  write("a.json", file.dump());
  file["base"]["scores"] = {{"sigma", 0}};
  write("b.json", file.dump());
  for (const std::string name : {"a", "b"}) {
    command({"sweep", "", sweep},
            {path(name + ".json"), "--out", path(name), "--set", "training.log_every=0"});
  }
  const json both = compare_outcome({path("a"), path("b"), "--json"}).json();
  const json onset = both.at("points").at(0).at("columns").at("collapse_onset");
  EXPECT_EQ(onset.at("a"), 1.0);
  EXPECT_EQ(onset.at("b"), "none");
  EXPECT_EQ(onset.at("difference"), nullptr);
  EXPECT_EQ(onset.at("delta"), 1.0);
  EXPECT_EQ(column(both, "collapse_onset").at("higher"), 1);
  // 32 tokens a step are too few.
  const json few = both.at("points").at(1).at("columns").at("collapse_onset");
  EXPECT_EQ(few.at("b"), nullptr);
  EXPECT_EQ(few.at("delta"), nullptr);
}

TEST_F(CompareCommand, ShowsTablesOf80Columns) {
  sweep_to("a", {"1", "2"});
  sweep_to("b", {"1", "2"}, {"--set", "training.steps=12"});
  const RunOutcome outcome = compare_outcome({"a", "b"});
  EXPECT_EQ(outcome.code, ExitCode::bad_input);
  const std::string out =
      compare_outcome({path("a"), path("b"), "--column", "loss", "--top", "1"}).out;
  EXPECT_NE(out.find("2 points in common"), std::string::npos) << out;
  EXPECT_NE(out.find("\nloss, largest differences first:\n"), std::string::npos) << out;
  EXPECT_NE(out.find("\nand 1 point more; --top 0 shows all\n"), std::string::npos) << out;
  EXPECT_EQ(compare_outcome({path("a"), path("b"), "--column", "loss", "--top", "1"}).out, out);
}

TEST_F(CompareCommand, SetsRunsSideBySideByTheirVariants) {
  write("variants.json", tiny_variants().dump());
  run_command({path("variants.json"), "--out", path("one")});
  run_command({path("variants.json"), "--out", path("two"), "--seed", "2"});
  const json both = compare_outcome({path("one"), path("two"), "--json"}).json();
  ASSERT_EQ(both.at("points").size(), 2u);
  EXPECT_EQ(both.at("points").at(1).at("axes"), (json{{"variant", "quantile"}}));
  const json summary = read_json("two/summary.json");
  EXPECT_EQ(both.at("points").at(1).at("columns").at("loss").at("b"),
            summary.at("variants").at(1).at("final").at("loss"));
}

TEST_F(CompareCommand, WithNothingInCommonThereIsNothingToSay) {
  sweep_to("a", {"1"});
  sweep_to("b", {"2"});
  const RunOutcome outcome = compare_outcome({path("a"), path("b")});
  EXPECT_EQ(outcome.code, ExitCode::unknown);
  EXPECT_NE(outcome.err.find("have no point in common"), std::string::npos) << outcome.err;
}

TEST_F(CompareCommand, ReadsASweepThatIsNotFinished) {
  sweep_to("a", {"1", "2"});
  const std::string lines = read("a/results.jsonl");
  write("a/results.jsonl", lines.substr(0, lines.size() / 2));
  EXPECT_EQ(compare_outcome({path("a"), path("a")}).code, ExitCode::pass);
}

TEST_F(CompareCommand, BadInputIsOneLine) {
  sweep_to("a", {"1"});
  std::filesystem::create_directory(root_ / "empty");
  const auto expect_error = [&](const Names& arguments, ExitCode code, const std::string& part) {
    const RunOutcome outcome = compare_outcome(arguments);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  };
  expect_error({path("a")}, ExitCode::usage,
               "two directories of results, A and B, and 1 are given");
  expect_error({path("a"), path("none")}, ExitCode::bad_input, "this is no directory");
  expect_error({path("a"), path("empty")}, ExitCode::bad_input,
               "it holds neither sweep.json nor summary.json");
  expect_error({path("a"), path("a"), "--column", "los"}, ExitCode::usage, "Did you mean 'loss'?");
  write("a/results.jsonl", "{\"run\": \"x\"}\n");
  expect_error({path("a"), path("a")}, ExitCode::bad_input, "is not as it was written");
}

TEST_F(CompareCommand, HelpFitsTheScreen) {
  const RunOutcome help = compare_outcome({"--help"});
  EXPECT_EQ(help.code, ExitCode::pass);
  std::istringstream lines(help.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80u) << line;
}

}  // namespace
}  // namespace ballast::sim
