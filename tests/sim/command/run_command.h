#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "sim/command/dispatch.h"
#include "sim/command/run.h"
#include "tests/support/paths.h"

namespace ballast::sim {

struct RunOutcome {
  ExitCode code;
  std::string out, err;

  nlohmann::json json() const { return nlohmann::json::parse(out); }
};

/// `ballast WORDS...` with this verb, in process.
inline RunOutcome command(const Verb& verb, std::vector<std::string> arguments) {
  std::ostringstream out, err;
  arguments.insert(arguments.begin(), verb.name);
  const ExitCode code = dispatch(std::span(&verb, 1), arguments, out, err);
  return {code, out.str(), err.str()};
}

/// `ballast run ARGUMENTS...`, in process.
inline RunOutcome run_command(const std::vector<std::string>& arguments) {
  return command({"run", "", run}, arguments);
}

/// What a shell says of a line in which "$ballast" is the built command: the exit status, and 128 +
/// the signal that ended it.
inline int shell(const std::string& line) {
  const std::string whole = "ballast='" + test::command_file() + "'; " + line;
  const int status = std::system(whole.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// A test of the command with a folder of its own, and a scenario in it that takes milliseconds.
class RunCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::temp_directory_path() /
            (std::string("ballast-") + test->test_suite_name() + "-" + test->name() + "-" + std::to_string(getpid()));
    std::filesystem::remove_all(root_);
    std::filesystem::create_directory(root_);
    write("tiny.json", tiny().dump());
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  static nlohmann::json tiny() {
    return {{"ballast", 1},
            {"name", "tiny"},
            {"model",
             {{"layers", 2},
              {"hidden", 12},
              {"latent", 6},
              {"routed_experts", 6},
              {"top_k", 2},
              {"expert_inner", 5},
              {"shared_inner", 4}}},
            {"tokens", {{"vocabulary", 23}, {"topics", 2}, {"sequence_length", 8}}},
            {"training", {{"steps", 6}, {"sequences", 2}, {"log_every", 4}, {"evaluate_every", 3}}},
            {"expect", {{{"metric", "loss"}, {"at_most", 100}}}}};
  }
  static nlohmann::json tiny_variants() {
    auto scenario = tiny();
    scenario["variants"] = {{{"name", "none"}, {"set", {{"balancer.kind", "none"}}}},
                            {{"name", "quantile"}, {"set", {{"training.steps", 9}}}}};
    return scenario;
  }

  std::string path(const std::string& name) const { return (root_ / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(root_ / name, std::ios::binary) << text;
  }
  std::string read(const std::string& name) const {
    std::ifstream file(root_ / name, std::ios::binary);
    EXPECT_TRUE(file) << name;
    return {std::istreambuf_iterator<char>(file), {}};
  }
  nlohmann::json read_json(const std::string& name) const {
    return nlohmann::json::parse(read(name));
  }
  std::vector<nlohmann::json> read_lines(const std::string& name) const {
    std::istringstream text(read(name));
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }
  /// The names of everything in the folder, hidden ones too.
  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(root_))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  std::filesystem::path root_;
};

}  // namespace ballast::sim
