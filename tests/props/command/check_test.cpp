#include "props/command/check.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "props/protocol/json.h"
#include "sim/usage_error.h"
#include "sim/input_error.h"
#include "sim/output/output_error.h"
#include "tests/props/support/fakes.h"
#include "tests/props/support/temporary_folder.h"

namespace ballast::props {
namespace {

using sim::ExitCode;
using test::law_below;

struct Said {
  ExitCode code;
  std::string out;
};

class CheckCommand : public testing::Test {
 protected:
  Said run(const std::vector<Law>& laws, std::vector<std::string> arguments) {
    arguments.push_back("--failures=" + (folder_.path() / "failures").string());
    std::ostringstream out, err;
    const ExitCode code = check(laws, arguments, out, err);
    return {code, out.str()};
  }
  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string text(const std::string& name) const {
    std::ostringstream out;
    out << std::ifstream(file(name)).rdbuf();
    return out.str();
  }
  const Law pass_ = law_below("some.pass", 100), fail_ = law_below("some.fail", 3);
  test::TemporaryFolder folder_;
};

TEST_F(CheckCommand, ExitCodesAreThoseOfTheVerdict) {
  const Law skipped = test::law_of(
      "some.skipped", [](Subject&, const Case&) { return test::outcome_of(Outcome::Kind::unsupported); });
  EXPECT_EQ(run({pass_}, {}).code, ExitCode::pass);
  EXPECT_EQ(run({pass_, fail_}, {}).code, ExitCode::failed);
  EXPECT_EQ(run({skipped}, {}).code, ExitCode::unknown);
  EXPECT_EQ(run({pass_}, {"--help"}).code, ExitCode::pass);
}

TEST_F(CheckCommand, WhatMakesNoSenseIsAUsageError) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"--laws", "sme.*"}, {"--cases", "0"}, {"--cases", "many"}, {"--jobs", "0"}, {"--seed", "-1"},
           {"--time-budget", "soon"}, {"--time-budget", "0"}, {"--subject-timeout", "5 days"},
           {"--reproduce", "some.pass"}, {"--reproduce", "some.pas:1:1"},
           {"--reproduce", "some.pass:1:1", "--laws", "some.*"}, {"--fast"}}) {
    EXPECT_THROW(run({pass_}, arguments), sim::UsageError) << arguments[0] << " " << arguments.back();
  }
}

TEST_F(CheckCommand, PatternsChooseTheLaws) {
  const auto ids = [&](const std::string& pattern) {
    std::string text;
    const Json json = Json::parse(run({pass_, law_below("other.one", 100)}, {"--json", "--laws", pattern}).out);
    for (const auto& law : json.at("laws")) text += law.at("id").get<std::string>() + " ";
    return text;
  };
  EXPECT_EQ(ids("*"), "some.pass other.one ");
  EXPECT_EQ(ids("some.*"), "some.pass ");
  EXPECT_EQ(ids("other.one,some.pass"), "some.pass other.one ");
}

TEST_F(CheckCommand, TheLineOfAFailureReproducesIt) {
  const Law rare = law_below("some.rare", 15.875f);
  const Json found = Json::parse(run({rare}, {"--json", "--cases", "1000", "--seed", "4"}).out)["laws"][0]["failure"];
  const Said again = run({rare}, {"--json", "--reproduce", found.at("reproduce")});
  EXPECT_EQ(again.code, ExitCode::failed);
  EXPECT_EQ(Json::parse(again.out)["laws"][0]["failure"]["case"], found.at("case"));
}

TEST_F(CheckCommand, OutputIsTheSameFromRunToRunAndOverJobs) {
  const Said one = run({pass_}, {"--jobs", "1"});
  EXPECT_EQ(run({pass_}, {"--jobs", "3"}).out, one.out);
}

TEST_F(CheckCommand, JunitAndObservationsAreWritten) {
  run({pass_, fail_}, {"--cases", "40", "--junit", file("junit.xml"), "--observations", file("cases.jsonl")});
  EXPECT_NE(text("junit.xml").find("<testsuites tests=\"2\" failures=\"1\""), std::string::npos);
  std::istringstream lines(text("cases.jsonl"));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_EQ(Json::parse(line)["type"], "test_case");
  EXPECT_EQ(count, 41) << "of the law that fails: up to the case it fails on";
  EXPECT_THROW(run({pass_}, {"--junit", file("none/junit.xml")}), sim::OutputError);
}

TEST_F(CheckCommand, AnExternalSubjectThatTalksNonsenseFails) {
  Law with_edge = pass_;
  with_edge.edges = {"tie"};
  EXPECT_EQ(run({with_edge}, {"--subject", "exit 7"}).code, ExitCode::failed);
  const Said said = run({pass_, fail_}, {"--json", "--subject", "echo hello", "--subject-timeout", "5"});
  EXPECT_EQ(said.code, ExitCode::failed);
  const Json json = Json::parse(said.out);
  EXPECT_EQ(json["laws"][0]["id"], "protocol.hello");
  EXPECT_NE(json["laws"][0]["failure"]["seen"].get<std::string>().find("it is no JSON: hello"), std::string::npos);
}

}  // namespace
}  // namespace ballast::props
