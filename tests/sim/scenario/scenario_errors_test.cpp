#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "sim/input_error.h"
#include "sim/scenario/scenario_file.h"
#include "tests/sim/scenario/data_files.h"

namespace ballast::sim {
namespace {

std::string error_of(const std::string& text, const std::string& origin,
                     const std::vector<Override>& overrides = {}) {
  try {
    parse_scenario(text, origin, overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return origin + " was accepted";
}

std::string override_error(const std::string& text, const std::string& assignment) {
  return error_of(text, "x.json", {parse_override(assignment).value()});
}

std::vector<std::string> bad_files() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(source_file("tests/data/scenarios/bad"))) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// errors.txt holds the whole line of every file in the folder, in the order of their names.
TEST(ScenarioErrors, SayWhatWhereWhyAndWhatWouldBeRight) {
  std::istringstream expected(sample("bad/errors.txt"));
  std::string line;
  for (const std::string& name : bad_files()) {
    ASSERT_TRUE(std::getline(expected, line)) << "errors.txt has no line for " << name;
    EXPECT_EQ(error_of(sample("bad/" + name), name), line);
  }
  EXPECT_FALSE(std::getline(expected, line)) << "errors.txt has a line too many: " << line;
}

TEST(ScenarioErrors, RefuseEveryTruncationOfAFile) {
  const std::string text = sample("everything.json");
  const std::size_t end = text.rfind('}');
  for (std::size_t size = 0; size <= end; size += 7) {
    EXPECT_THROW(parse_scenario(text.substr(0, size), "x.json"), InputError) << size;
  }
}

TEST(ScenarioErrors, NameTheOverrideThatIsWrong) {
  const std::string text = R"({"ballast": 1, "model": {"top_k": 4}})";
  EXPECT_EQ(
      override_error(text, "training.stesp=5"),
      "--set training.stesp: unknown field 'training.stesp': a scenario has no such field; did you "
      "mean 'training.steps'?");
  EXPECT_EQ(override_error(text, "steps=5"),
            "--set steps: unknown field 'steps': a scenario has no such field; did you mean "
            "'training.steps'?");
  EXPECT_EQ(
      override_error(text, "training={}"),
      "--set training: cannot set 'training' as a whole: it is a group of fields; name one of "
      "steps, ranks, micro_batches, sequences, optimizer, loss_scale, evaluate_every, "
      "evaluate_sequences, log_every, checkpoint_every, overflow_steps, restart_after in it");
  EXPECT_EQ(
      override_error(text, "training.optimizer.learning_rate=nan"),
      "--set training.optimizer.learning_rate: bad value of 'training.optimizer.learning_rate': "
      "\"nan\" is not a number; give a number at least 0.0 and at most 1000000.0");
  EXPECT_EQ(
      override_error(text, "model.routed_experts=3"),
      "--set model.routed_experts: bad value of 'model.top_k': top_k is 4 and there are 3 routed "
      "experts; a token chooses at most all of them");
  EXPECT_EQ(
      override_error(text, "tokens.file=a.txt"),
      "--set tokens.file: useless value of 'tokens.file': it belongs to tokens.source \"text\" "
      "or \"recorded\", and tokens.source is \"mixture\"; remove it, or set tokens.source");
}

TEST(ScenarioErrors, NameAFileThatCannotBeRead) {
  const auto error = [](const std::string& file) -> std::string {
    try {
      load_scenario(file);
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(error("no/such.json"),
            "no/such.json: cannot read the scenario: No such file or directory");
  EXPECT_EQ(error("/"), "/: cannot read the scenario: Is a directory");
  EXPECT_EQ(error("/dev/zero"),
            "/dev/zero: cannot read the scenario: the file is larger than 16777216 bytes");
}

}  // namespace
}  // namespace ballast::sim
