#include "sim/command/sweep.h"

#include <fcntl.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <random>
#include <thread>

#include "sim/text/printable.h"
#include "tests/sim/command/run_command.h"

namespace ballast::sim {
namespace {

using nlohmann::json;
using Names = std::vector<std::string>;

/// `ballast sweep` over a tiny scenario.
class SweepCommand : public RunCommandTest {
 protected:
  void SetUp() override {
    RunCommandTest::SetUp();
    write("small.json", small().dump());
  }

  static json small() {
    return {{"ballast_sweep", 1},
            {"name", "small"},
            {"seeds", 2},
            {"base", "tiny.json"},
            {"axes",
             {{{"field", "model.top_k"}, {"values", {1, 2}}},
              {{"name", "balancer"},
               {"values",
                {{{"label", "none"}, {"set", {{"balancer.kind", "none"}}}},
                 {{"label", "exact"}, {"set", {{"balancer.estimator", "exact"}}}}}}}}}};
  }

  static RunOutcome sweep_command(const Names& arguments) {
    return command({"sweep", "", sweep}, arguments);
  }

  void expect_error(const Names& arguments, ExitCode code, const std::string& part) const {
    const RunOutcome outcome = sweep_command(arguments);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  }

  /// Every file of a results directory with its bytes, hidden ones too.
  std::map<std::string, std::string> files_of(const std::string& directory) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(root_ / directory)) {
      const std::string name = entry.path().filename();
      files[name] = read(directory + "/" + name);
    }
    return files;
  }
};

TEST_F(SweepCommand, WritesALineARunAndRanksThePoints) {
  const RunOutcome outcome =
      sweep_command({path("small.json"), "--out", path("out"), "--jobs", "1"});
  EXPECT_EQ(outcome.code, ExitCode::pass) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const auto lines = read_lines("out/results.jsonl");
  ASSERT_EQ(lines.size(), 8u);
  for (std::size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(lines[i].at("run"), i);
  EXPECT_EQ(lines[3].at("axes"), (json{{"model.top_k", 1}, {"balancer", "exact"}}));
  EXPECT_EQ(lines[3].at("seed"), 2);
  EXPECT_EQ(lines[3].at("verdict"), "pass");
  const json summary = read_json("out/summary.json");
  ASSERT_EQ(summary.at("points").size(), 4u);
  double last = 0.0;
  for (const json& point : summary.at("points")) {
    const double median = point.at("columns").at("final_max_violation").at("median");
    EXPECT_GE(median, last);
    last = median;
  }
  EXPECT_EQ(sweep_command({path("small.json"), "--json"}).json(), summary);
}

TEST_F(SweepCommand, ARunOfASweepIsTheRunOfItsScenario) {
  sweep_command({path("small.json"), "--out", path("out")});
  const auto line = read_lines("out/results.jsonl").at(7);
  const auto alone = run_command({path("tiny.json"), "--json", "--set", "model.top_k=2", "--set",
                                  "balancer.estimator=exact", "--seed", "2"});
  EXPECT_EQ(line.at("digest"), alone.json().at("digest"));
}

TEST_F(SweepCommand, WritesTheSameBytesWithAnyNumberOfJobsAndThreads) {
  const auto first = sweep_command({path("small.json"), "--out", path("a"), "--jobs", "1"});
  for (const Names& how :
       {Names{"--jobs", "2"}, Names{"--jobs", "5"}, Names{"--jobs", "2", "--threads", "2"}}) {
    Names arguments = {path("small.json"), "--out", path("b")};
    arguments.insert(arguments.end(), how.begin(), how.end());
    EXPECT_EQ(sweep_command(arguments).out, first.out);
    EXPECT_EQ(files_of("b"), files_of("a"));
    std::filesystem::remove_all(root_ / "b");
  }
}

TEST_F(SweepCommand, GoesOnFromAnyPrefixOfItsJournalToTheSameBytes) {
  sweep_command({path("small.json"), "--out", path("whole"), "--jobs", "1"});
  const auto whole = files_of("whole");
  const std::string lines = whole.at("results.jsonl");
  for (std::size_t bytes = 0; bytes <= lines.size(); bytes += 97) {
    std::filesystem::remove_all(root_ / "part");
    std::filesystem::create_directory(root_ / "part");
    write("part/sweep.json", whole.at("sweep.json"));
    write("part/results.jsonl", lines.substr(0, bytes));
    EXPECT_EQ(sweep_command({path("small.json"), "--out", path("part")}).code, ExitCode::pass);
    EXPECT_EQ(files_of("part"), whole) << bytes;
  }
}

TEST_F(SweepCommand, MakesNoRunAgainThatItHasTheResultOf) {
  sweep_command({path("small.json"), "--out", path("out"), "--jobs", "1"});
  auto lines = read_lines("out/results.jsonl");
  lines[2]["loss"] = 12345.0;  // nothing would compute that
  std::string text;
  for (const auto& line : lines) text += line.dump() + "\n";
  write("out/results.jsonl", text);
  sweep_command({path("small.json"), "--out", path("out")});
  EXPECT_EQ(read_lines("out/results.jsonl").at(2).at("loss"), 12345.0);
}

TEST_F(SweepCommand, DropsEverythingFromADamagedLineOn) {
  sweep_command({path("small.json"), "--out", path("out"), "--jobs", "1"});
  const auto whole = files_of("out");
  std::string lines = whole.at("results.jsonl");
  lines.replace(lines.find('\n') + 5, 20, 20, '\0');
  write("out/results.jsonl", lines);
  sweep_command({path("small.json"), "--out", path("out")});
  EXPECT_EQ(files_of("out"), whole);
}

/// How many moments a sweep is killed at; more, and a longer sweep, by BALLAST_KILLS.
int kills() {
  const char* given = std::getenv("BALLAST_KILLS");
  return given == nullptr ? 8 : std::stoi(given);
}

/// Whatever moment a sweep is killed at, going on ends with the bytes of one that ran through.
TEST_F(SweepCommand, KilledAtARandomMomentItGoesOnToTheSameBytes) {
  using Clock = std::chrono::steady_clock;
  json file = small();
  file["seeds"] = 12;
  write("killed.json", file.dump());
  const auto sweep_process = [&](const std::string& directory,
                                 std::optional<Clock::duration> kill_after) {
    const pid_t child = fork();
    if (child == 0) {
      dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
      execl(test::command_file().c_str(), "ballast", "sweep", path("killed.json").c_str(), "--out",
            path(directory).c_str(), "--json", nullptr);
      _exit(127);
    }
    if (kill_after) {
      std::this_thread::sleep_for(*kill_after);
      kill(child, SIGKILL);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  };
  const auto start = Clock::now();
  ASSERT_EQ(sweep_process("whole", std::nullopt), 0);
  const auto whole_time = Clock::now() - start;
  const auto whole = files_of("whole");
  std::mt19937 random(1);
  int killed = 0, with_results = 0;
  for (int moment = 0; moment < kills(); ++moment) {
    std::filesystem::remove_all(root_ / "out");
    const auto after = whole_time * static_cast<int>(random() % 1000) / 1000;
    killed += WIFSIGNALED(sweep_process("out", after)) ? 1 : 0;
    if (std::filesystem::exists(root_ / "out/results.jsonl"))
      with_results += read("out/results.jsonl").empty() ? 0 : 1;
    ASSERT_EQ(sweep_process("out", std::nullopt), 0);
    EXPECT_EQ(files_of("out"), whole) << "killed at moment " << moment;
  }
  EXPECT_GT(killed, 0);
  EXPECT_GT(with_results, 0);
}

/// Killed again and again, it ends so too.
TEST_F(SweepCommand, AKilledSweepGoesOnToTheSameBytes) {
  json file = small();
  file["axes"][0]["values"] = {1, 2, 3};
  file["seeds"] = 8;
  write("killed.json", file.dump());
  ASSERT_EQ(sweep_command({path("killed.json"), "--out", path("whole")}).code, ExitCode::pass);
  const auto whole = files_of("whole");
  int killed = 0;
  for (int trial = 0; trial < 2; ++trial) {
    std::filesystem::remove_all(root_ / "out");
    for (int start = 0;; ++start) {
      const pid_t child = fork();
      if (child == 0) {
        dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
        execl(test::command_file().c_str(), "ballast", "sweep", path("killed.json").c_str(),
              "--out", path("out").c_str(), "--json", nullptr);
        _exit(127);
      }
      if (start < 6) {
        std::this_thread::sleep_for(std::chrono::milliseconds(3 + 7 * start + 5 * trial));
        kill(child, SIGKILL);
      }
      int status = 0;
      waitpid(child, &status, 0);
      if (WIFEXITED(status)) {
        EXPECT_EQ(WEXITSTATUS(status), 0);
        break;
      }
      ++killed;
    }
    EXPECT_EQ(files_of("out"), whole) << trial;
  }
  EXPECT_GT(killed, 0);
}

TEST_F(SweepCommand, RefusesADirectoryThatIsNotItsOwnAndSaysWhy) {
  sweep_command({path("small.json"), "--out", path("out")});
  const auto before = files_of("out");
  expect_error(
      {path("small.json"), "--out", path("out"), "--set", "training.steps=5"}, ExitCode::usage,
      "it holds the results of another sweep (/base/training/steps is 6 there and 5 here)");
  std::string other = before.at("sweep.json");
  const std::size_t at = other.find("\"version\": \"") + 12;
  other.replace(at, other.find('"', at) - at, "9.9.9");
  write("out/sweep.json", other);
  expect_error({path("small.json"), "--out", path("out")}, ExitCode::usage,
               "/version is \"9.9.9\" there");
  EXPECT_EQ(read("out/results.jsonl"), before.at("results.jsonl"));

  std::filesystem::create_directory(root_ / "full");
  write("full/mine.txt", "mine");
  expect_error({path("small.json"), "--out", path("full")}, ExitCode::usage,
               "the directory is not empty, and holds no sweep");
  expect_error({path("small.json"), "--out", path("tiny.json")}, ExitCode::usage,
               "a file of this name exists");
  expect_error({path("small.json"), "--out", path("no/where")}, ExitCode::usage,
               "it cannot be made");
}

TEST_F(SweepCommand, AFailingPointIsReportedAndStopsNoOther) {
  json file = small();
  file["axes"][0]["values"] = {7, 1, 2};
  write("failing.json", file.dump());
  const RunOutcome outcome = sweep_command({path("failing.json"), "--out", path("out")});
  EXPECT_EQ(outcome.code, ExitCode::failed);
  EXPECT_NE(outcome.err.find("ballast: point 0 (model.top_k 7, balancer none), seed 1: "),
            std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("/axes/0/values/0: bad value of 'model.top_k': top_k is 7 and there "
                             "are 6 routed experts"),
            std::string::npos)
      << outcome.err;
  const auto lines = read_lines("out/results.jsonl");
  ASSERT_EQ(lines.size(), 12u);
  EXPECT_TRUE(lines[0].contains("error"));
  EXPECT_TRUE(lines[4].contains("digest"));
  const auto whole = files_of("out");
  EXPECT_EQ(sweep_command({path("failing.json"), "--out", path("out")}).code, ExitCode::failed);
  EXPECT_EQ(files_of("out"), whole);
}

TEST_F(SweepCommand, AnExpectationThatFailsAtSomePointIsAFailure) {
  json file = small();
  file["base"] = tiny();
  file["base"]["expect"] = {{{"metric", "e_max_violation:mean"}, {"at_most", 0.0}}};
  write("strict.json", file.dump());
  const RunOutcome outcome = sweep_command({path("strict.json")});
  EXPECT_EQ(outcome.code, ExitCode::failed);
  EXPECT_NE(outcome.out.find("fail"), std::string::npos);
  EXPECT_EQ(sweep_command({path("strict.json"), "--json"}).json().at("points").at(0).at("verdict"),
            "fail");
}

TEST_F(SweepCommand, RanksByTheChosenColumn) {
  const json summary = sweep_command({path("small.json"), "--json", "--rank-by", "loss"}).json();
  EXPECT_EQ(summary.at("ranked_by"), "loss");
  double last = 0.0;
  for (const json& point : summary.at("points")) {
    EXPECT_GE(point.at("columns").at("loss").at("median"), last);
    last = point.at("columns").at("loss").at("median");
  }
  expect_error({path("small.json"), "--rank-by", "losses"}, ExitCode::usage,
               "there is no such column. Did you mean 'loss'?");
}

TEST_F(SweepCommand, ShowsTheOnsetAndTheKindOfACollapse) {
  json file = small();
  file["base"] = {{"ballast", 1},
                  {"mode", "router_only"},
                  {"model", {{"routed_experts", 16}}},
                  {"balancer", {{"kind", "none"}}},
                  {"training", {{"steps", 12}}}};
  file["axes"] = {{{"field", "scores.aligned_share"}, {"values", {1, 0}}}};
  write("collapse.json", file.dump());
  const json summary =
      sweep_command({path("collapse.json"), "--json", "--rank-by", "collapse_onset"}).json();
  const json &best = summary.at("points").at(0), &worst = summary.at("points").at(1);
  EXPECT_EQ(best.at("axes").at("scores.aligned_share"), 0);
  EXPECT_EQ(best.at("columns").at("collapse_onset").at("median"), "none");
  EXPECT_EQ(best.at("collapse_kinds"), (json{{"none", 2}}));
  EXPECT_EQ(worst.at("columns").at("collapse_onset").at("median"), 1.0);
  EXPECT_EQ(worst.at("collapse_kinds"), (json{{"monopoly", 2}}));
  const std::string out = sweep_command({path("collapse.json"), "--out", path("out")}).out;
  EXPECT_NE(out.find("monopoly"), std::string::npos) << out;
  EXPECT_EQ(read_lines("out/results.jsonl").at(2).at("collapse_onset"), "none");
}

TEST_F(SweepCommand, ADryRunShowsThePointsAndRunsNothing) {
  const RunOutcome outcome = sweep_command({path("small.json"), "--dry-run", "--jobs", "2"});
  EXPECT_EQ(outcome.code, ExitCode::pass);
  EXPECT_NE(outcome.out.find("small: 4 points, 2 seeds each, 8 runs; about 1 MiB"),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.err.find("ballast: about "), std::string::npos);
  const json plan = sweep_command({path("small.json"), "--dry-run", "--json"}).json();
  EXPECT_EQ(plan.at("points").size(), 4u);
  EXPECT_GT(plan.at("memory_bytes"), 0);
  EXPECT_EQ(entries(), (Names{"small.json", "tiny.json"}));
}

TEST_F(SweepCommand, BadInputIsOneLine) {
  expect_error({}, ExitCode::usage, "sweep needs a FILE");
  expect_error({path("none.json")}, ExitCode::bad_input, "cannot read the sweep");
  expect_error({path("tiny.json")}, ExitCode::bad_input, "'ballast_sweep' is missing");
  expect_error({path("small.json"), "--jobs", "0"}, ExitCode::usage, "--jobs 0");
  expect_error({path("small.json"), "--set", "training.stps=3"}, ExitCode::usage,
               "did you mean 'training.steps'?");
  expect_error({path("small.json"), "--set", "model.top_k=1"}, ExitCode::usage,
               "axis 'model.top_k' of the sweep sets it");
  expect_error({path("small.json"), "--set", "model.hidden=1000000000"}, ExitCode::bad_input,
               "does not fit into memory");
}

TEST_F(SweepCommand, HelpFitsTheScreenAndNamesEveryOption) {
  const RunOutcome help = sweep_command({"--help"});
  EXPECT_EQ(help.code, ExitCode::pass);
  for (const char* word : {"--set", "--out", "--jobs", "--threads", "--rank-by", "--json",
                           "--dry-run", "Exit codes:", "Examples:"}) {
    EXPECT_NE(help.out.find(word), std::string::npos) << word;
  }
  std::istringstream lines(help.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80u) << line;
}

TEST_F(SweepCommand, TheShippedSweepIsReadAndHas200Points) {
  const RunOutcome plan = sweep_command(
      {test::source_dir() + "/scenarios/skew/first.sweep.json", "--dry-run", "--json"});
  ASSERT_EQ(plan.code, ExitCode::pass) << plan.err;
  EXPECT_EQ(plan.json().at("points").size(), 200u);
}

}  // namespace
}  // namespace ballast::sim
