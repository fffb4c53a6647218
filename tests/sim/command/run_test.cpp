#include "sim/command/run.h"

#include <algorithm>
#include <set>

#include "sim/scenario/scenario_file.h"
#include "sim/sweep/sweep_file.h"
#include "sim/text/printable.h"
#include "tests/sim/command/run_command.h"
#include "tests/sim/scenario/data_files.h"

namespace ballast::sim {
namespace {

using nlohmann::json;
using Names = std::vector<std::string>;

std::size_t line_count(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

std::set<std::string> keys(const json& object) {
  std::set<std::string> all;
  for (const auto& [key, value] : object.items()) all.insert(key);
  return all;
}

const std::vector<std::string> five_metrics = {"e_frac_with_tokens:mean",
                                               "e_frac_oversubscribed:mean", "e_max_violation:mean",
                                               "e_max_violation:max", "e_min_violation:mean"};

void expect_figures(const json& figures) {
  for (const auto& name : five_metrics) EXPECT_TRUE(figures.at(name).is_number()) << name;
  EXPECT_TRUE(figures.at("loss").is_number());
}

void expect_summary(const json& summary, std::size_t steps) {
  EXPECT_TRUE(summary.at("verdict").is_string());
  EXPECT_EQ(summary.at("digest").get<std::string>().size(), 32u);
  EXPECT_EQ(summary.at("steps"), steps);
  expect_figures(summary.at("final"));
  EXPECT_TRUE(summary.at("expectations").is_array());
}

class Run : public RunCommandTest {
 protected:
  /// An error is one line, and nothing on stdout.
  void expect_error(const Names& arguments, ExitCode code, const std::string& part) {
    const RunOutcome outcome = run_command(arguments);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(line_count(outcome.err), 1u) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("internal"), std::string::npos) << outcome.err;
  }
};

// What it prints

TEST_F(Run, PrintsTheApprovedTextOfASmallScenario) {
  const RunOutcome outcome = run_command({source_file("tests/data/scenarios/run-small.json")});
  EXPECT_EQ(outcome.code, ExitCode::failed);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out, source_text("tests/data/approved/run-small.txt"));
}

TEST_F(Run, KeepsTo80ColumnsWhateverTheNumbersAndNames) {
  json scenario = tiny_variants();
  scenario["name"] =
      "a name of many words that goes on, and on, and on until it is longer than a line can be";
  scenario["variants"][0]["name"] = "a-variant-with-a-very-long-name";
  scenario["variants"][0]["expect"] = {{{"metric", "e_frac_oversubscribed:mean"},
                                        {"aggregate", "every"},
                                        {"at_least", 0.125},
                                        {"at_most", 0.875}}};
  scenario["training"]["optimizer"]["learning_rate"] = 1e6;
  scenario["model"]["routed_scale"] = 1e6;
  write("wide.json", scenario.dump());
  std::istringstream out(run_command({path("wide.json")}).out);
  std::size_t lines = 0;
  for (std::string line; std::getline(out, line); ++lines)
    EXPECT_LE(display_width(line), 80u) << line;
  EXPECT_GT(lines, 15u);
}

TEST_F(Run, ShowsTheLastStepOfEveryVariant) {
  write("variants.json", tiny_variants().dump());
  const std::string out = run_command({path("variants.json")}).out;
  EXPECT_NE(out.find("\n   6  none"), std::string::npos) << out;
  EXPECT_NE(out.find("\n   9  quantile"), std::string::npos) << out;
}

TEST_F(Run, WritesTheSameBytesAgainAndOnAnyNumberOfThreads) {
  write("variants.json", tiny_variants().dump());
  for (const Names& arguments : {Names{path("tiny.json")}, Names{path("variants.json")},
                                 Names{path("variants.json"), "--json"}}) {
    const std::string first = run_command(arguments).out;
    EXPECT_EQ(run_command(arguments).out, first);
    for (const char* threads : {"1", "2", "3"}) {
      Names more = arguments;
      more.insert(more.end(), {"--threads", threads});
      EXPECT_EQ(run_command(more).out, first) << threads;
    }
  }
}

TEST_F(Run, WithoutAFileTakesTheQuickstart) {
  const RunOutcome dry = run_command({"--dry-run"});
  EXPECT_EQ(dry.json().at("name"), "quickstart");
  EXPECT_TRUE(dry.err.starts_with("memory: about ")) << dry.err;
}

TEST_F(Run, HelpFitsTheScreenAndNamesEveryOptionAndExitCode) {
  const RunOutcome help = run_command({"--help"});
  EXPECT_EQ(help.code, ExitCode::pass);
  for (const char* word :
       {"--set", "--seed", "--out", "--threads", "--json", "--dry-run", "--help", "Examples:"}) {
    EXPECT_NE(help.out.find(word), std::string::npos) << word;
  }
  std::string exit_codes = help.out.substr(help.out.find("Exit codes:"));
  std::ranges::replace(exit_codes, '\n', ' ');
  for (const char* code : {" 0 ", " 1 ", " 2 ", " 3 ", " 4 ", " 70 "}) {
    EXPECT_NE(exit_codes.find(code), std::string::npos) << code;
  }
  std::istringstream lines(help.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80u) << line;
}

// Verdicts

TEST_F(Run, EndsWith0WhenAllExpectationsHold) {
  const RunOutcome outcome = run_command({path("tiny.json")});
  EXPECT_EQ(outcome.code, ExitCode::pass);
  EXPECT_NE(outcome.out.find("verdict: pass (1 of 1 expectation met)"), std::string::npos)
      << outcome.out;
}

TEST_F(Run, EndsWith1AndSaysWhichExpectationFailed) {
  json scenario = tiny();
  scenario["expect"].push_back(
      {{"metric", "e_max_violation:mean"}, {"aggregate", "last"}, {"at_most", 0.001}});
  write("failing.json", scenario.dump());
  const RunOutcome outcome = run_command({path("failing.json")});
  EXPECT_EQ(outcome.code, ExitCode::failed);
  EXPECT_NE(
      outcome.out.find("verdict: fail (1 of 2 expectations failed)\n  e_max_violation:mean is "),
      std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find(" at step 6, not at most 0.001\n"), std::string::npos) << outcome.out;
  EXPECT_EQ(run_command({path("failing.json"), "--json"}).code, ExitCode::failed);
}

TEST_F(Run, EndsWith2WhenNothingWasExpected) {
  json scenario = tiny();
  scenario.erase("expect");
  write("unknown.json", scenario.dump());
  const RunOutcome outcome = run_command({path("unknown.json")});
  EXPECT_EQ(outcome.code, ExitCode::unknown);
  EXPECT_NE(outcome.out.find("verdict: unknown (nothing was expected)"), std::string::npos)
      << outcome.out;
  EXPECT_EQ(run_command({path("unknown.json"), "--json"}).json().at("verdict"), "unknown");
}

TEST_F(Run, EndsWith2WhenAnExpectationHasNoValue) {
  json scenario = tiny();
  scenario["expect"] = {{{"metric", "eval_loss"}, {"from", 4}, {"until", 5}, {"at_most", 100}}};
  write("unknown.json", scenario.dump());
  const RunOutcome outcome = run_command({path("unknown.json")});
  EXPECT_EQ(outcome.code, ExitCode::unknown);
  EXPECT_NE(outcome.out.find("eval_loss has no value, not at most 100"), std::string::npos)
      << outcome.out;
}

// The summary

TEST_F(Run, SummaryHoldsVerdictDigestStepsFinalAndExpectations) {
  const json summary = run_command({path("tiny.json"), "--json"}).json();
  expect_summary(summary, 6);
  EXPECT_EQ(summary.at("name"), "tiny");
  EXPECT_FALSE(summary.contains("variants"));
  ASSERT_EQ(summary.at("expectations").size(), 1u);
  EXPECT_EQ(summary.at("expectations")[0].at("verdict"), "pass");
  EXPECT_TRUE(summary.at("final").at("eval_loss").is_number());
}

TEST_F(Run, SummaryOfVariantsHoldsEachAndTheFinalStateOfTheLast) {
  write("variants.json", tiny_variants().dump());
  const json summary = run_command({path("variants.json"), "--json"}).json();
  expect_summary(summary, 9);
  ASSERT_EQ(summary.at("variants").size(), 2u);
  expect_summary(summary.at("variants")[0], 6);
  expect_summary(summary.at("variants")[1], 9);
  EXPECT_EQ(summary.at("final"), summary.at("variants")[1].at("final"));
  ASSERT_EQ(summary.at("expectations").size(), 2u);
  EXPECT_EQ(summary.at("expectations")[0].at("variant"), "none");
  EXPECT_EQ(summary.at("expectations")[1].at("variant"), "quantile");
}

TEST_F(Run, DigestOfVariantsCoversAllOfThem) {
  const auto digest = [&](json scenario, std::size_t changed) {
    scenario["variants"][changed]["set"]["training.optimizer.learning_rate"] = 0.02;
    write("changed.json", scenario.dump());
    return run_command({path("changed.json"), "--json"}).json().at("digest").get<std::string>();
  };
  write("variants.json", tiny_variants().dump());
  const auto before =
      run_command({path("variants.json"), "--json"}).json().at("digest").get<std::string>();
  EXPECT_EQ((std::set<std::string>{before, digest(tiny_variants(), 0), digest(tiny_variants(), 1)})
                .size(),
            3u);
}

// --out

TEST_F(Run, OutHoldsWhatTheRunSaid) {
  const RunOutcome outcome = run_command({path("tiny.json"), "--json", "--out", path("results/")});
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(entries(), (Names{"results", "tiny.json"}));
  EXPECT_EQ(read("results/summary.json"), outcome.out);

  const auto metrics = read_lines("results/metrics.jsonl");
  ASSERT_EQ(metrics.size(), 6u);
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    EXPECT_EQ(metrics[i].at("step"), i + 1);
    expect_figures(metrics[i]);
  }
  for (const auto& name : five_metrics)
    EXPECT_EQ(metrics.back().at(name), outcome.json().at("final").at(name));

  const auto windows = read_lines("results/diagnostics.jsonl");
  ASSERT_EQ(windows.size(), 2u);
  EXPECT_EQ(windows[0].at("first_step"), 1);
  EXPECT_EQ(windows[0].at("last_step"), 4);
  EXPECT_EQ(windows[1].at("last_step"), 6);
  ASSERT_EQ(windows[0].at("layers").size(), 2u);
  for (const auto& [name, layer] : windows[0].at("layers").items()) {
    EXPECT_EQ(keys(layer),
              (std::set<std::string>{"biases", "expert_load_counts", "max_load_over_mean", "tokens",
                                     "zero_load_experts"}))
        << name;
    EXPECT_EQ(layer.at("tokens"), 4 * 2 * 8);
  }

  const auto evaluations = read_lines("results/eval.jsonl");
  ASSERT_EQ(evaluations.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(evaluations[i].at("step"), 3 * i);
  EXPECT_EQ(evaluations.back().at("loss"), outcome.json().at("final").at("eval_loss"));
}

TEST_F(Run, OutHasAFolderForEachVariant) {
  write("variants.json", tiny_variants().dump());
  const RunOutcome outcome =
      run_command({path("variants.json"), "--json", "--out", path("results")});
  EXPECT_EQ(read("results/summary.json"), outcome.out);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string folder = "results/" + std::string(i == 0 ? "none" : "quantile") + "/";
    EXPECT_EQ(read_json(folder + "summary.json"), outcome.json().at("variants")[i]);
    EXPECT_EQ(read_lines(folder + "metrics.jsonl").size(), i == 0 ? 6u : 9u);
    EXPECT_FALSE(read_lines(folder + "diagnostics.jsonl").empty());
    EXPECT_FALSE(read_lines(folder + "eval.jsonl").empty());
  }
}

TEST_F(Run, EveryScenarioWrittenRunsAgainToTheDigestBesideIt) {
  write("variants.json", tiny_variants().dump());
  run_command({path("variants.json"), "--seed", "9", "--set", "balancer.gain=0.5", "--out",
               path("results")});
  run_command({path("tiny.json"), "--set", "training.restart_after=[3]", "--out", path("single")});
  for (const char* folder : {"results/", "results/none/", "results/quantile/", "single/"}) {
    const json again = run_command({path(folder + std::string("scenario.json")), "--json"}).json();
    EXPECT_EQ(again.at("digest"), read_json(folder + std::string("summary.json")).at("digest"))
        << folder;
  }
}

TEST_F(Run, DryRunPrintsAScenarioOfTheSameDigest) {
  write("variants.json", tiny_variants().dump());
  for (const char* name : {"tiny.json", "variants.json"}) {
    const Names arguments = {path(name), "--seed", "5", "--set", "model.top_k=1"};
    Names dry = arguments, wet = arguments;
    dry.emplace_back("--dry-run");
    wet.emplace_back("--json");
    write("resolved.json", run_command(dry).out);
    EXPECT_EQ(run_command({path("resolved.json"), "--json"}).out, run_command(wet).out);
  }
}

TEST_F(Run, WithoutCollectorOrEvaluationTheFilesAreThereAndEmpty) {
  const RunOutcome outcome = run_command({path("tiny.json"), "--set", "diagnostics=false", "--set",
                                          "training.evaluate_every=0", "--out", path("results")});
  EXPECT_EQ(outcome.code, ExitCode::pass);
  EXPECT_EQ(read("results/diagnostics.jsonl"), "");
  EXPECT_EQ(read("results/eval.jsonl"), "");
}

TEST_F(Run, OutIsRefusedBeforeTheRunAndLeavesWhatIsThere) {
  std::filesystem::create_directory(root_ / "full");
  write("full/kept", "kept");
  write("file", "kept");
  expect_error({path("tiny.json"), "--out", path("full")}, ExitCode::usage,
               "exists and is not empty");
  expect_error({path("tiny.json"), "--out", path("file")}, ExitCode::usage,
               "a file of this name exists");
  expect_error({path("tiny.json"), "--out", path("no/results")}, ExitCode::usage,
               "there is no directory");
  expect_error({path("tiny.json"), "--out", path("file/results")}, ExitCode::usage,
               "there is no directory");
  expect_error({path("tiny.json"), "--out", ""}, ExitCode::usage, "this is no name");
  expect_error({path("tiny.json"), "--out", path("x"), "--dry-run"}, ExitCode::usage,
               "--dry-run runs nothing");
  EXPECT_EQ(read("full/kept") + read("file"), "keptkept");
  EXPECT_EQ(entries(), (Names{"file", "full", "tiny.json"}));
}

TEST_F(Run, OutRefusesVariantsThatCannotHaveAFolderOfTheirName) {
  json scenario = tiny_variants();
  for (const std::string& name :
       {std::string("summary.json"), std::string("scenario.json"), std::string(201, 'n')}) {
    scenario["variants"][1]["name"] = name;
    write("taken.json", scenario.dump());
    expect_error({path("taken.json"), "--out", path("results")}, ExitCode::bad_input,
                 "taken.json#/variants/1/name: ");
  }
  EXPECT_EQ(entries(), (Names{"taken.json", "tiny.json"}));
}

// Overrides

TEST_F(Run, SeedAndSetHaveTheLastWord) {
  const auto digest = [&](Names arguments) {
    arguments.insert(arguments.begin(), {path("tiny.json"), "--json"});
    return run_command(arguments).json().at("digest").get<std::string>();
  };
  EXPECT_EQ(digest({"--seed", "7"}), digest({"--set", "seed=7"}));
  EXPECT_NE(digest({"--seed", "7"}), digest({"--seed", "8"}));
  EXPECT_EQ(digest({"--set", "seed=3", "--set", "seed=7"}), digest({"--seed", "7"}));
  EXPECT_EQ(digest({"--seed", "7", "--set", "seed=3"}), digest({"--seed", "7"}));
  EXPECT_EQ(digest({"--seed=1"}), digest({}));
}

TEST_F(Run, SetReachesIntoVariants) {
  write("variants.json", tiny_variants().dump());
  const json summary =
      run_command({path("variants.json"), "--json", "--set", "training.steps=2"}).json();
  EXPECT_EQ(summary.at("variants")[0].at("steps"), 2);
  EXPECT_EQ(summary.at("variants")[1].at("steps"), 2);
}

// What is wrong

TEST_F(Run, WhatTheCommandLineGetsWrongIsAUsageError) {
  const std::string tiny = path("tiny.json");
  expect_error({tiny, "--bogus"}, ExitCode::usage, "there is no option '--bogus'");
  expect_error({tiny, "--thread", "2"}, ExitCode::usage, "Did you mean '--threads'?");
  expect_error({tiny, "--threads", "0"}, ExitCode::usage,
               "--threads 0: this is not within 1..1024");
  expect_error({tiny, "--threads", "-1"}, ExitCode::usage,
               "--threads -1: this is not within 1..1024");
  expect_error({tiny, "--threads", "many"}, ExitCode::usage, "many");
  expect_error({tiny, "--set"}, ExitCode::usage, "--set");
  expect_error({tiny, "--set", "training.steps"}, ExitCode::usage, "--set training.steps=50");
  expect_error({tiny, "--set", "=5"}, ExitCode::usage, "--set training.steps=50");
  expect_error({tiny, "--set", "training.steps="}, ExitCode::usage, "\"\" is not a number");
  expect_error({tiny, "--set", "training.steps=0"}, ExitCode::usage, "0 is too small");
  expect_error({tiny, "--set", "training.stesp=5"}, ExitCode::usage,
               "did you mean 'training.steps'?");
  expect_error({tiny, "--set", "training.optimizer.learning_rate=1e30"}, ExitCode::usage,
               "too large");
  expect_error({tiny, "--set", "model.top_k=6"}, ExitCode::usage,
               "needs an expert that is not chosen");
  expect_error({tiny, "--set", "name=\xff"}, ExitCode::usage, "not UTF-8");
  expect_error({tiny, "--seed", "x"}, ExitCode::usage, "--seed: bad value");
  expect_error({tiny, "--seed", "-1"}, ExitCode::usage, "-1 is negative");
  expect_error({tiny, "--seed", "1", "--seed", "2"}, ExitCode::usage, "--seed");
  expect_error({tiny, tiny}, ExitCode::usage, "2 scenario files");
  expect_error({""}, ExitCode::usage, "the name of the scenario file is empty");
}

TEST_F(Run, WhatAFileGetsWrongIsBadInput) {
  const auto expect_refusal = [&](const json& scenario, const std::string& part) {
    write("bad.json", scenario.dump());
    expect_error({path("bad.json")}, ExitCode::bad_input, part);
  };
  json scenario = tiny();
  scenario["model"]["top_k"] = 6;
  expect_refusal(scenario, "bad.json#/model/top_k: ");
  scenario = tiny();
  scenario["modell"] = json::object();
  expect_refusal(scenario, "did you mean 'model'?");
  scenario = tiny();
  scenario["training"]["steps"] = "many";
  expect_refusal(scenario, "bad.json#/training/steps: ");
  scenario = tiny_variants();
  scenario["variants"][1]["name"] = "none";
  expect_refusal(scenario, "another variant is called 'none' too");
  write("bad.json", tiny().dump().substr(0, 100));
  expect_error({path("bad.json")}, ExitCode::bad_input, "the file is not JSON");
  expect_error({path("absent.json")}, ExitCode::bad_input, "No such file or directory");
  expect_error({root_.string()}, ExitCode::bad_input, "Is a directory");
  expect_error(
      {path("tiny.json"), "--set", "tokens.source=text", "--set", "tokens.file=" + path("absent")},
      ExitCode::bad_input, "cannot take tokens from the text: No such file or directory");
}

TEST_F(Run, SizesThatDoNotFitMemoryAreRefusedWithTheEstimate) {
  const std::string memory =
      "tiny.json: the scenario does not fit into memory: it would take about ";
  for (const char* size :
       {"tokens.vocabulary=1000000000", "model.hidden=1000000000", "training.steps=1000000000"}) {
    expect_error({path("tiny.json"), "--set", size, "--out", path("results")}, ExitCode::bad_input,
                 memory);
  }
  EXPECT_EQ(entries(), (Names{"tiny.json"}));
}

TEST_F(Run, ALossThatIsNoNumberFailsEveryBoundAndIsNullInJson) {
  json scenario = tiny();
  scenario["model"].update({{"layers", 3},
                            {"score", "logit"},
                            {"renormalize", false},
                            {"routed_scale", 1e6},
                            {"aggregate_norm", false},
                            {"activation", "swiglu"}});
  scenario["training"]["optimizer"]["learning_rate"] = 1e6;
  scenario["expect"][0]["at_least"] = -1e300;
  write("wild.json", scenario.dump());
  const RunOutcome outcome = run_command({path("wild.json"), "--json", "--out", path("results")});
  EXPECT_EQ(outcome.code, ExitCode::failed);
  const json summary = outcome.json();
  EXPECT_TRUE(summary.at("final").at("loss").is_null());
  EXPECT_EQ(summary.at("expectations")[0].at("verdict"), "fail");
  EXPECT_TRUE(summary.at("expectations")[0].at("value").is_null());
  EXPECT_TRUE(read_lines("results/metrics.jsonl").back().at("loss").is_null());
  EXPECT_NE(run_command({path("wild.json")}).out.find("\n  loss is nan at step "),
            std::string::npos);
}

TEST_F(Run, FaultsOfTheRunAreShownAndRecorded) {
  const Names arguments = {path("tiny.json"), "--set", "training.overflow_steps=[2,3]", "--set",
                           "training.restart_after=[4]"};
  const std::string out = run_command(arguments).out;
  EXPECT_NE(out.find("2 overflows (the optimizer step is skipped; first at step 2), 1 restart"),
            std::string::npos)
      << out;
  Names with_json = arguments;
  with_json.emplace_back("--json");
  EXPECT_EQ(run_command(with_json).json().at("events"),
            json({{{"step", 2}, {"event", "overflow"}},
                  {{"step", 3}, {"event", "overflow"}},
                  {{"step", 4}, {"event", "restart"}, {"from_checkpoint", 0}}}));
}

// Shipped scenarios

TEST(ShippedScenarios, AreAllRead) {
  std::size_t files = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(source_file("scenarios"))) {
    const auto kind = entry.path().stem().extension();
    const bool is_data = entry.path().parent_path().filename() == "data";
    if (entry.path().extension() != ".json" || kind == ".schema" || is_data) continue;
    ++files;
    const bool is_sweep = kind == ".sweep";
    EXPECT_NO_THROW({
      const auto name = is_sweep ? load_sweep(entry.path()).name
                                 : load_scenario(entry.path()).common.name;
      EXPECT_NE(name, "unnamed") << entry.path();
    }) << entry.path();
  }
  EXPECT_GE(files, 4u);
}

}  // namespace
}  // namespace ballast::sim
