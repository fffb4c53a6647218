#include "sim/command/signature.h"

#include <set>

#include "core/kernels/kernels.h"
#include "sim/replay/fingerprint.h"
#include "sim/text/printable.h"
#include "tests/sim/command/run_command.h"

namespace ballast::sim {
namespace {

using nlohmann::json;
using Names = std::vector<std::string>;

class SignatureCommand : public RunCommandTest {
 protected:
  static RunOutcome signature_outcome(const Names& arguments) {
    return command({"signature", "", signature}, arguments);
  }

  /// The signature of tiny.json with every entry, as `here.json` too.
  json explained() const {
    const RunOutcome outcome = signature_outcome({path("tiny.json"), "--explain", "--json"});
    write("here.json", outcome.out);
    return outcome.json();
  }
};

TEST_F(SignatureCommand, OfTheSuiteIsTheSameOnEveryTargetAndAnyNumberOfThreads) {
  std::set<std::string> different;
  std::size_t threads = 1;
  for (const auto* const kernels : kernels::available()) {
    kernels::limit_target(kernels->target);
    const RunOutcome outcome = signature_outcome({"--json", "--threads", std::to_string(threads)});
    different.insert(outcome.json().at("signature").get<std::string>());
    threads += 2;
  }
  kernels::limit_target(kernels::Target::avx512);
  // What every build computes; a change of it is a change of behaviour, of which the commit must tell.
  EXPECT_EQ(different, std::set<std::string>{"8d582388203110ba7fda9a3be79f80bb"});
}

TEST_F(SignatureCommand, ChangesWithAnySettingOfAScenario) {
  const auto of = [&](const Names& settings) {
    Names words = {path("tiny.json"), "--json"};
    words.insert(words.end(), settings.begin(), settings.end());
    return signature_outcome(words).json().at("signature").get<std::string>();
  };
  std::set<std::string> different = {of({})};
  different.insert(of({"--seed", "2"}));
  different.insert(of({"--set", "balancer.kind=none"}));
  different.insert(of({"--set", "training.steps=5"}));
  EXPECT_EQ(different.size(), 4u);
}

TEST_F(SignatureCommand, DoesNotChangeWithHowTheTokensOfAStepAreSplit) {
  const auto of = [&](const char* ranks, const char* micro_batches, const char* sequences) {
    return signature_outcome({path("tiny.json"), "--json", "--set",
                              std::string("training.ranks=") + ranks, "--set",
                              std::string("training.micro_batches=") + micro_batches, "--set",
                              std::string("training.sequences=") + sequences})
        .json();
  };
  EXPECT_EQ(of("1", "1", "8"), of("1", "8", "1"));
  EXPECT_EQ(of("1", "1", "8"), of("4", "1", "2"));
  EXPECT_EQ(of("1", "1", "8"), of("2", "2", "2"));
}

TEST_F(SignatureCommand, ExplainsEveryStepAndLayerInTheOrderOfTheRun) {
  const json whole = explained();
  EXPECT_EQ(whole.at("numerics"), numerics_fingerprint());
  Names places;
  for (const json& entry : whole.at("entries")) {
    EXPECT_EQ(entry.at("digest").get<std::string>().size(), 32u);
    places.push_back(entry.at("stage").get<std::string>());
  }
  const Names one_step = {"choices", "weights", "choices", "weights", "biases",
                          "loads",   "biases",  "loads",   "loss"};
  ASSERT_EQ(places.size(), 6 * one_step.size() + 3 + 1);  // evaluations, and the end
  EXPECT_EQ(places.front(), "evaluation");
  EXPECT_TRUE(std::equal(one_step.begin(), one_step.end(), places.begin() + 1));
  EXPECT_EQ(places.back(), "final state");
  const RunOutcome text = signature_outcome({path("tiny.json"), "--explain"});
  EXPECT_NE(text.out.find("  tiny, step 4, layer 1: biases\n"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("signature: " + whole.at("signature").get<std::string>()),
            std::string::npos);
}

TEST_F(SignatureCommand, NamesTheFirstStepLayerAndStageThatDiffer) {
  json other = explained();
  EXPECT_EQ(signature_outcome({path("tiny.json"), "--compare", path("here.json")}).code,
            ExitCode::pass);
  // Two entries of step 3; the first of them counts.
  for (json& entry : other["entries"]) {
    if (entry["step"] != 3 || entry.value("layer", 0) != 1) continue;
    if (entry["stage"] == "weights" || entry["stage"] == "biases") entry["digest"] = "other";
  }
  write("other.json", other.dump());
  const Names compare = {path("tiny.json"), "--compare", path("other.json")};
  const RunOutcome words = signature_outcome(compare);
  EXPECT_EQ(words.code, ExitCode::diverged);
  EXPECT_EQ(words.out, "the signatures differ, first in tiny, step 3, layer 1: weights\n");
  Names as_json = compare;
  as_json.emplace_back("--json");
  EXPECT_EQ(signature_outcome(as_json).json(), json({{"verdict", "differs"},
                                                     {"run", "tiny"},
                                                     {"step", 3},
                                                     {"layer", 1},
                                                     {"stage", "weights"}}));
}

TEST_F(SignatureCommand, RefusesToCompareDifferentThings) {
  const json whole = explained();
  const auto refused = [&](const Names& arguments, const std::string& part) {
    const RunOutcome outcome = signature_outcome(arguments);
    EXPECT_EQ(outcome.code, ExitCode::bad_input) << outcome.out;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  };
  const std::string tiny = path("tiny.json"), bad = path("bad.json");
  refused({tiny, "--compare", path("here.json"), "--set", "training.steps=5"},
          "it is not of the same stages and runs");
  refused({tiny, "--compare", path("none.json")}, "none.json");
  refused({tiny, "--compare", tiny}, "the file is none");
  json short_one = whole;
  short_one.erase("entries");
  write("bad.json", short_one.dump());
  refused({tiny, "--compare", bad}, "it is one digest alone");
  json damaged = whole;
  damaged["entries"][4].erase("digest");
  write("bad.json", damaged.dump());
  refused({tiny, "--compare", bad}, "entry 4 is damaged");
  refused({path("none.json")}, "none.json");
}

TEST_F(SignatureCommand, RefusesCommandLinesThatMakeNoSense) {
  for (const Names& arguments :
       {Names{"--set", "training.steps=3"}, Names{"--explain", "--compare", path("here.json")},
        Names{"--threads", "0"}, Names{path("tiny.json"), "--set", "training.steps=none"}}) {
    const RunOutcome outcome = signature_outcome(arguments);
    EXPECT_EQ(outcome.code, ExitCode::usage) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

TEST_F(SignatureCommand, TheCommandRefusesATargetThatTheProcessorHasNot) {
  EXPECT_EQ(shell("BALLAST_TARGET=scalar \"$ballast\" --version >/dev/null 2>&1"), 0);
  EXPECT_EQ(shell("BALLAST_TARGET=avx1024 \"$ballast\" --version >/dev/null 2>&1"), 3);
}

TEST_F(SignatureCommand, HelpFitsTheScreen) {
  const RunOutcome help = signature_outcome({"--help"});
  EXPECT_EQ(help.code, ExitCode::pass);
  std::istringstream lines(help.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80u) << line;
}

}  // namespace
}  // namespace ballast::sim
