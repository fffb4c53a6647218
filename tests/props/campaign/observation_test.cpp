#include "props/campaign/observation.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "props/protocol/json.h"

namespace ballast::props {
namespace {

TEST(Observation, HasExactlyTheMembersOfTheFormat) {
  const Reproduction which{.law = "a.b", .seed = 3, .index = 4};
  CaseResult result;
  result.outcome = {.kind = Outcome::Kind::broken, .where = "w", .expected = "e", .seen = "s", .edges = {"tie"}};
  const Json line = Json::parse(observation_line(which, {}, result, 1700000000.5, 0.25));
  std::set<std::string> members;
  for (const auto& [key, value] : line.items()) members.insert(key);
  EXPECT_EQ(members, (std::set<std::string>{"type", "status", "status_reason", "representation", "arguments",
                                            "how_generated", "features", "coverage", "timing", "metadata", "property",
                                            "run_start"}));
  EXPECT_EQ(line["type"], "test_case");
  EXPECT_EQ(line["status"], "failed");
  EXPECT_EQ(line["status_reason"], "w: expected e, seen s");
  EXPECT_EQ(line["features"]["edge: tie"], true);
  EXPECT_TRUE(line["coverage"].is_null());
  EXPECT_EQ(line["timing"]["execute:test"], 0.25);
  result.outcome.kind = Outcome::Kind::discarded;
  EXPECT_EQ(Json::parse(observation_line(which, {}, result, 0, 0))["status"], "gave_up");
}

}  // namespace
}  // namespace ballast::props
