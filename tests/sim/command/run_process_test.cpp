#include <gtest/gtest.h>

#include <csignal>

#include "tests/sim/command/run_command.h"

namespace ballast::sim {
namespace {

using Names = std::vector<std::string>;

/// The built command in a process of its own: exit statuses, signals, streams.
class RunProcess : public RunCommandTest {
 protected:
  /// A shell line in the test's folder.
  int in_folder(const std::string& line) const {
    return shell("cd '" + root_.string() + "' && " + line);
  }
};

TEST_F(RunProcess, EndsWithTheDocumentedExitStatus) {
  auto scenario = tiny();
  scenario["expect"][0]["at_most"] = 0;
  write("failing.json", scenario.dump());
  scenario.erase("expect");
  write("unknown.json", scenario.dump());
  write("bad.json", "{");
  EXPECT_EQ(in_folder("\"$ballast\" run tiny.json >out"), 0);
  EXPECT_EQ(in_folder("\"$ballast\" run failing.json >out"), 1);
  EXPECT_EQ(in_folder("\"$ballast\" run unknown.json >out"), 2);
  EXPECT_EQ(in_folder("\"$ballast\" run tiny.json --threads 0 2>err"), 3);
  EXPECT_EQ(in_folder("\"$ballast\" run bad.json 2>err"), 4);
}

TEST_F(RunProcess, PrintsWhatItPrintsInProcess) {
  EXPECT_EQ(in_folder("\"$ballast\" run tiny.json >out 2>err"), 0);
  EXPECT_EQ(read("out"), run_command({path("tiny.json")}).out);
  EXPECT_EQ(read("err"), "");
}

TEST_F(RunProcess, ReadsAScenarioFromAPipe) {
  EXPECT_EQ(in_folder("cat tiny.json | \"$ballast\" run /dev/stdin --json >out"), 0);
  EXPECT_EQ(read_json("out").at("name"), "tiny");
  EXPECT_EQ(in_folder("mkfifo pipe && (cat tiny.json >pipe & \"$ballast\" run pipe --json >out)"),
            0);
  EXPECT_EQ(read_json("out").at("name"), "tiny");
}

TEST_F(RunProcess, SaysInOneLineThatStdoutTakesNothing) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "this machine has no /dev/full";
  const std::string line =
      "ballast: cannot write the output: stdout is closed, or the disk behind it is full\n";
  for (const char* command :
       {"run tiny.json >/dev/full", "run tiny.json --json >/dev/full", "run tiny.json >&-",
        "run --help >/dev/full", "run --dry-run >/dev/full"}) {
    EXPECT_EQ(in_folder("\"$ballast\" 2>err " + std::string(command)), 70) << command;
    EXPECT_EQ(read("err"), line) << command;
  }
}

TEST_F(RunProcess, EndsQuietlyWhenItsReaderHasGone) {
  EXPECT_EQ(in_folder("\"$ballast\" run tiny.json 2>err | head -n 1 >out"), 0);
  EXPECT_EQ(read("err"), "");
}

TEST_F(RunProcess, LeavesNothingOnAFullDiskAndShowsTheVerdictAllTheSame) {
  // No file may grow beyond a block, which diagnostics.jsonl does.
  EXPECT_EQ(in_folder("(ulimit -f 1; \"$ballast\" run tiny.json --out results 2>&1) | cat >out"),
            0);
  const std::string out = read("out");
  EXPECT_NE(out.find("verdict: pass"), std::string::npos) << out;
  EXPECT_NE(out.find("results/"), std::string::npos) << out;
  EXPECT_NE(out.find(": the results cannot be written: File too large; nothing was left behind"),
            std::string::npos)
      << out;
  EXPECT_EQ(entries(), (Names{"out", "tiny.json"}));
}

/// Starts the command with these arguments, waits until `shown` has come from it, sends the signal,
/// and returns the status that waitpid gives. (A shell would have its background jobs ignore
/// SIGINT, and so may whoever started the tests.)
int status_after_signal(const Names& arguments, const std::string& shown, int signal) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    std::signal(signal, SIG_DFL);
    dup2(ends[1], STDOUT_FILENO);
    std::vector<char*> words = {const_cast<char*>("ballast")};
    for (const auto& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
    words.push_back(nullptr);
    execv(test::command_file().c_str(), words.data());
    _exit(127);
  }
  close(ends[1]);
  std::string out;
  char byte = 0;
  while (out.find(shown) == std::string::npos && read(ends[0], &byte, 1) == 1) out += byte;
  EXPECT_NE(out.find(shown), std::string::npos) << out;
  kill(child, signal);
  int status = -1;
  waitpid(child, &status, 0);
  close(ends[0]);
  return status;
}

TEST_F(RunProcess, LeavesNothingWhenASignalEndsIt) {
  const Names arguments = {"run",   path("tiny.json"), "--set", "training.steps=1000000",
                           "--out", path("results")};
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const int status =
        status_after_signal(arguments, "\n      1    ", signal);  // the row of the first step
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
    EXPECT_EQ(entries(), (Names{"tiny.json"})) << signal;
  }
}

}  // namespace
}  // namespace ballast::sim
