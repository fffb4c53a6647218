#include "props/command/mutants.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "props/protocol/json.h"
#include "sim/usage_error.h"
#include "tests/props/support/trials.h"

namespace ballast::props {
namespace {

using sim::ExitCode;

struct Said {
  ExitCode code;
  std::string out;
};

Said run(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--laws", "metrics.*,combine.*", "--seeds", "2"});
  std::ostringstream out, err;
  const ExitCode code = mutants(all_laws(), all_mutants(), arguments, out, err);
  return {code, out.str()};
}

TEST(MutantsCommand, PassesWhenEveryMutantIsKilled) {
  const Said said = run({"--mutants", "pooled-layers,ordered-hash"});
  EXPECT_EQ(said.code, ExitCode::pass) << said.out;
  EXPECT_NE(said.out.find("2 mutants: 2 killed"), std::string::npos) << said.out;
}

TEST(MutantsCommand, FailsWhenOneSurvives) {
  EXPECT_EQ(run({"--mutants", "ordered-hash,biased-weights", "--cases", "20"}).code,
            ExitCode::failed);
}

TEST(MutantsCommand, IsUnknownWithoutAMutantToKill) {
  EXPECT_EQ(run({"--mutants", "truncates"}).code, ExitCode::unknown);
}

TEST(MutantsCommand, JsonSaysWhoKillsWhom) {
  const Json json = Json::parse(run({"--mutants", "pooled-layers", "--json"}).out);
  EXPECT_EQ(json.at("verdict"), "pass");
  const Json& mutant = json.at("mutants").at(0);
  EXPECT_EQ(mutant.at("name"), "pooled-layers");
  EXPECT_EQ(mutant.at("faults"), Json::array({"M100"}));
  EXPECT_EQ(mutant.at("equivalent"), false);
  EXPECT_FALSE(mutant.at("killed_by").empty());
  EXPECT_EQ(mutant.at("cases").size(), 2u);
}

TEST(MutantsCommand, ShowsTheSmallestCounterexample) {
  const Said said = run({"--mutants", "pooled-layers", "--show"});
  EXPECT_NE(said.out.find("breaks metrics."), std::string::npos) << said.out;
}

TEST(MutantsCommand, SaysTheSameOnAnyNumberOfThreads) {
  const std::vector<std::string> some = {"--mutants", "*-layers,*hash*"};
  EXPECT_EQ(run({some[0], some[1], "--jobs", "1"}).out, run({some[0], some[1], "--jobs", "3"}).out);
}

TEST(MutantsCommand, WhatMakesNoSenseIsAUsageError) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"--mutants", "counts-pading"}, {"--seeds", "0"}, {"--cases", "few"}, {"--jobs", "0"}, {"--seed", "-1"},
           {"--fast"}}) {
    EXPECT_THROW(run(arguments), sim::UsageError) << arguments[0];
  }
}

}  // namespace
}  // namespace ballast::props
