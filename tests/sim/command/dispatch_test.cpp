#include "sim/command/dispatch.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "core/version.h"
#include "sim/input_error.h"
#include "sim/output/output_error.h"
#include "sim/replay/fingerprint.h"
#include "sim/usage_error.h"

namespace ballast::sim {
namespace {

ExitCode echo(Arguments arguments, std::ostream& out, std::ostream&) {
  for (const auto& word : arguments) out << word << '\n';
  return ExitCode::pass;
}
ExitCode misuse(Arguments, std::ostream&, std::ostream&) {
  throw UsageError("two\nlines");
}
ExitCode reject(Arguments, std::ostream&, std::ostream&) {
  throw InputError({.what = "bad", .where = "f:1", .why = "", .right = ""});
}
ExitCode refute(Arguments, std::ostream& out, std::ostream&) {
  out << "a counterexample\n";
  return ExitCode::failed;
}
ExitCode spill(Arguments, std::ostream&, std::ostream&) {
  throw OutputError("results/: the disk is full");
}
ExitCode crash(Arguments, std::ostream&, std::ostream&) {
  throw std::logic_error("boom");
}
ExitCode throw_a_number(Arguments, std::ostream&, std::ostream&) {
  throw 7;
}

const std::vector<Verb> verbs = {
    {"echo", "says it again", echo}, {"misuse", "", misuse}, {"reject", "", reject},
    {"refute", "", refute},          {"spill", "", spill},   {"crash", "", crash},
    {"number", "", throw_a_number}};

struct Result {
  ExitCode code;
  std::string out, err;
};

Result ballast_command(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  const ExitCode code = dispatch(verbs, arguments, out, err);
  return {code, out.str(), err.str()};
}

TEST(Dispatch, RunsTheVerbWithTheOtherArguments) {
  const Result result = ballast_command({"echo", "a", "--b"});
  EXPECT_EQ(result.code, ExitCode::pass);
  EXPECT_EQ(result.out, "a\n--b\n");
}

TEST(Dispatch, HelpOfAVerbIsTheVerbsOwnHelp) {
  EXPECT_EQ(ballast_command({"help", "echo"}).out, "--help\n");
}

TEST(Dispatch, HelpListsTheVerbsOnStdoutAndNoVerbAtAllIsAUsageError) {
  for (const char* word : {"help", "--help", "-h"}) {
    const Result help = ballast_command({word});
    EXPECT_EQ(help.code, ExitCode::pass);
    EXPECT_NE(help.out.find("says it again"), std::string::npos);
  }
  const Result nothing = ballast_command({});
  EXPECT_EQ(nothing.code, ExitCode::usage);
  EXPECT_EQ(nothing.out, "");
  EXPECT_NE(nothing.err.find("Usage:"), std::string::npos);
}

TEST(Dispatch, SuggestsTheNearestVerb) {
  const Result result = ballast_command({"ehco"});
  EXPECT_EQ(result.code, ExitCode::usage);
  EXPECT_NE(result.err.find("Did you mean 'echo'?"), std::string::npos);
  EXPECT_EQ(ballast_command({"help", "ehco"}).code, ExitCode::usage);
}

TEST(Dispatch, EveryExceptionBecomesOneLineAndItsExitCode) {
  const std::vector<std::pair<std::string, ExitCode>> expected = {{"misuse", ExitCode::usage},
                                                                  {"reject", ExitCode::bad_input},
                                                                  {"crash", ExitCode::internal},
                                                                  {"number", ExitCode::internal}};
  for (const auto& [verb, code] : expected) {
    const Result result = ballast_command({verb});
    EXPECT_EQ(result.code, code) << verb;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

TEST(Dispatch, AResultThatCannotBeWrittenIsAnInternalErrorWhateverItIs) {
  std::ofstream full("/dev/full");
  if (!full) GTEST_SKIP() << "this machine has no /dev/full";
  std::ostringstream err;
  const std::vector<std::string> arguments = {"refute"};
  EXPECT_EQ(dispatch(verbs, arguments, full, err), ExitCode::internal);
  EXPECT_NE(err.str().find("cannot write the output"), std::string::npos);
}

TEST(Dispatch, ShortHelpOfAVerbIsItsHelp) {
  EXPECT_EQ(ballast_command({"echo", "-h"}).out, "--help\n");
  EXPECT_EQ(ballast_command({"echo", "-h", "more"}).out, "-h\nmore\n");
}

TEST(Dispatch, ResultsThatCannotBeWrittenAreNoFaultOfTheProgram) {
  const Result result = ballast_command({"spill"});
  EXPECT_EQ(result.code, ExitCode::internal);
  EXPECT_EQ(result.err, "ballast: results/: the disk is full\n");
}

TEST(Dispatch, AFullDiskIsNotSuccess) {
  std::ofstream full("/dev/full");
  if (!full) GTEST_SKIP() << "this machine has no /dev/full";
  std::ostringstream err;
  const std::vector<std::string> arguments = {"echo", "data"};
  EXPECT_EQ(dispatch(verbs, arguments, full, err), ExitCode::internal);
  EXPECT_NE(err.str().find("cannot write the output"), std::string::npos);
}

TEST(Dispatch, SaysItsVersion) {
  EXPECT_EQ(ballast_command({"--version"}).out,
            "ballast " + std::string(version) + "\nnumerics " + numerics_fingerprint() + "\n");
}

}  // namespace
}  // namespace ballast::sim
