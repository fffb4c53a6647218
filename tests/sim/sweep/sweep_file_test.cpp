#include "sim/sweep/sweep_file.h"

#include <gtest/gtest.h>

#include <set>

#include "sim/input_error.h"
#include "tests/support/paths.h"

namespace ballast::sim {
namespace {

Json sweep_json() {
  return Json::parse(R"({"ballast_sweep": 1, "name": "s", "seeds": 2,
      "base": {"ballast": 1, "seed": 7, "model": {"routed_experts": 8}},
      "axes": [{"field": "tokens.sigma", "values": [1, 2, 3]},
               {"field": "model.top_k", "values": [1, 2]}]})");
}

Sweep parsed(const Json& json, std::span<const Override> overrides = {}) {
  return parse_sweep(json.dump(), "s.json", ".", overrides);
}

std::string error(const Json& json, std::span<const Override> overrides = {}) {
  try {
    parsed(json, overrides);
    return "no error";
  } catch (const InputError& error) {
    return error.what();
  }
}

const Scenario& scenario(const Sweep& sweep, std::size_t point) {
  return std::get<Scenario>(sweep.scenarios.at(point));
}

TEST(SweepFile, AGridTakesEveryValueWithEveryOtherAndTheLastAxisFirst) {
  const Sweep sweep = parsed(sweep_json());
  ASSERT_EQ(sweep.points.size(), 6u);
  EXPECT_EQ(sweep.points[1].axes.dump(), R"({"tokens.sigma":1,"model.top_k":2})");
  EXPECT_EQ(scenario(sweep, 1).model.moe.router.top_k, 2u);
  EXPECT_EQ(scenario(sweep, 4).tokens.sigma, 3.0);
  EXPECT_EQ(scenario(sweep, 4).model.moe.router.routed_experts, 8u);
}

TEST(SweepFile, RunsGoPointByPointOverTheSeeds) {
  const Sweep sweep = parsed(sweep_json());
  EXPECT_EQ(sweep.runs(), 12u);
  EXPECT_EQ(sweep.point_of(5), 2u);
  EXPECT_EQ(sweep.seed_of(4), 7u);
  EXPECT_EQ(sweep.seed_of(5), 8u);
}

TEST(SweepFile, ZipTakesValuesSideBySide) {
  Json json = sweep_json();
  json["mode"] = "zip";
  EXPECT_NE(error(json).find("it has 2 values, and axis 'tokens.sigma' has 3"), std::string::npos);
  json["axes"][0]["values"] = {1, 2};
  const Sweep sweep = parsed(json);
  ASSERT_EQ(sweep.points.size(), 2u);
  EXPECT_EQ(sweep.points[1].axes.dump(), R"({"tokens.sigma":2,"model.top_k":2})");
}

TEST(SweepFile, ALargerBudgetGoesOnWhereASmallerOneEnds) {
  Json json = sweep_json();
  json["mode"] = "random";
  json["axes"][0] = {{"field", "tokens.sigma"}, {"range", {{"from", 0}, {"to", 4}}}};
  json["budget"] = 5;
  const Sweep few = parsed(json);
  json["budget"] = 20;
  const Sweep many = parsed(json);
  ASSERT_EQ(few.points.size(), 5u);
  ASSERT_EQ(many.points.size(), 20u);
  std::set<Json> different;
  for (std::size_t i = 0; i < 20; ++i) different.insert(many.points[i].axes["tokens.sigma"]);
  EXPECT_GT(different.size(), 15u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(few.points[i].axes, many.points[i].axes);
  json["sampling_seed"] = 2;
  EXPECT_NE(parsed(json).points[0].axes, many.points[0].axes);
}

TEST(SweepFile, AnOverrideGoesToTheBase) {
  const std::vector<Override> overrides = {{"training.steps", "3", "--set training.steps"}};
  EXPECT_EQ(scenario(parsed(sweep_json(), overrides), 0).training.steps, 3u);
}

TEST(SweepFile, AnOverrideOfAFieldOfAnAxisIsRefusedAtItsPlace) {
  const std::vector<Override> overrides = {{"tokens.sigma", "3", "--set tokens.sigma"}};
  EXPECT_EQ(error(sweep_json(), overrides),
            "--set tokens.sigma: cannot set 'tokens.sigma': axis 'tokens.sigma' of the sweep sets "
            "it; leave it out");
}

TEST(SweepFile, APointOfContradictoryValuesIsImpossibleAndTheOthersAreNot) {
  Json json = sweep_json();
  json["axes"][1]["values"] = {1, 9};
  const Sweep sweep = parsed(json);
  EXPECT_TRUE(std::holds_alternative<Scenario>(sweep.scenarios[0]));
  ASSERT_TRUE(std::holds_alternative<Impossible>(sweep.scenarios[1]));
  EXPECT_EQ(std::get<Impossible>(sweep.scenarios[1]).reason,
            "s.json#/axes/1/values/1: bad value of 'model.top_k': top_k is 9 and there are 8 "
            "routed experts; a token chooses at most all of them");
}

TEST(SweepFile, ASweepWithoutAnyPossiblePointIsRefused) {
  Json json = sweep_json();
  json["axes"][1]["values"] = {9, 10};
  EXPECT_EQ(error(json).rfind("s.json#/axes: no point of the sweep can be run", 0), 0u)
      << error(json);
}

TEST(SweepFile, ErrorsOfTheBaseHaveTheirPlaceInTheSweepFile) {
  Json json = sweep_json();
  json["base"]["model"]["rooted_experts"] = 3;
  EXPECT_EQ(error(json),
            "s.json#/base/model/rooted_experts: unknown key 'rooted_experts': there is no such "
            "field here; did you mean 'routed_experts'?");
}

TEST(SweepFile, ABaseIsFoundBesideTheSweepFileAndMayNotHaveVariants) {
  Json json = sweep_json();
  json["axes"].erase(0);
  json["base"] = "scenarios/text.json";
  const std::string root = test::source_dir();
  EXPECT_EQ(parse_sweep(json.dump(), root + "/s.json", root).base.tokens.source,
            TokenSourceKind::text);
  json["base"] = "quickstart.json";
  const Json here = json;
  const auto with_variants = [&] { parse_sweep(here.dump(), "s.json", root + "/scenarios"); };
  EXPECT_THROW(with_variants(), InputError);
  EXPECT_EQ(error(json).rfind("./quickstart.json: cannot read the base scenario", 0), 0u)
      << error(json);
}

TEST(SweepFile, SaysWhatIsWrongAndWhere) {
  const auto with = [](const char* key, Json value) {
    Json json = sweep_json();
    json[key] = std::move(value);
    return error(json);
  };
  const auto without = [](const char* key) {
    Json json = sweep_json();
    json.erase(key);
    return error(json);
  };
  EXPECT_EQ(with("sees", 3),
            "s.json#/sees: unknown key 'sees': there is no such field here; did "
            "you mean 'seeds'?");
  EXPECT_EQ(with("seeds", 0),
            "s.json#/seeds: bad value of 'seeds': 0 is too small; give an "
            "integer from 1 to 10000");
  EXPECT_EQ(with("mode", "gird"),
            "s.json#/mode: bad value of 'mode': \"gird\" is not known (did "
            "you mean \"grid\"?); give one of \"grid\", \"zip\", \"random\"");
  EXPECT_EQ(with("budget", 3),
            "s.json#/budget: useless value of 'budget': it belongs to mode \"random\", and mode is "
            "\"grid\"; remove it, or set mode");
  EXPECT_EQ(with("ballast_sweep", 2),
            "s.json#/ballast_sweep: bad value of 'ballast_sweep': 2 is no format this program "
            "reads; give the number 1");
  EXPECT_EQ(without("ballast_sweep"),
            "s.json: 'ballast_sweep' is missing: it is required; begin the file with "
            "{\"ballast_sweep\": 1, ...");
  EXPECT_EQ(without("base"),
            "s.json: 'base' is missing: it is required; name a scenario file, or give a scenario");
  EXPECT_EQ(without("axes").rfind("s.json#/axes: 'axes' is missing", 0), 0u);
  EXPECT_EQ(with("base", 3).rfind("s.json#/base: bad value of 'base'", 0), 0u);
}

TEST(SweepFile, TwoAxesDoNotSetOneFieldAndNoneSetsTheSeed) {
  Json json = sweep_json();
  json["axes"].push_back(
      {{"name", "more"}, {"values", {{{"label", "x"}, {"set", {{"model.top_k", 2}}}}}}});
  EXPECT_NE(error(json).find("it sets model.top_k, and axis 'model.top_k' sets it too"),
            std::string::npos);
  json["axes"][2] = {{"field", "seed"}, {"values", {1, 2}}};
  EXPECT_NE(error(json).find("it sets the seed; say by 'seeds'"), std::string::npos);
}

TEST(SweepFile, AGridOfTooManyPointsIsRefusedBeforeItIsMade) {
  Json json = sweep_json();
  json["axes"] = Json::array();
  for (const char* field : {"tokens.sigma", "model.embedding_offset", "model.routed_scale"}) {
    json["axes"].push_back(
        {{"field", field}, {"range", {{"from", 1}, {"to", 2}, {"points", 1000}}}});
  }
  EXPECT_NE(error(json).find("more than 100000 points"), std::string::npos) << error(json);
}

TEST(SweepFile, ItsIdentityChangesWithEverythingThatDecidesResults) {
  const std::string before = identity_of(parsed(sweep_json())).dump();
  EXPECT_EQ(identity_of(parsed(sweep_json())).dump(), before);
  for (const auto& change : std::vector<std::pair<Json::json_pointer, Json>>{
           {Json::json_pointer("/seeds"), 3},
           {Json::json_pointer("/base/seed"), 8},
           {Json::json_pointer("/base/training/steps"), 7},
           {Json::json_pointer("/axes/0/values/1"), 2.5},
           {Json::json_pointer("/axes/0/name"), "skew"}}) {
    Json json = sweep_json();
    json[change.first] = change.second;
    EXPECT_NE(identity_of(parsed(json)).dump(), before) << change.first;
  }
}

}  // namespace
}  // namespace ballast::sim
