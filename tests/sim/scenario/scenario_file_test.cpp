#include "sim/scenario/scenario_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/scenario/files.h"
#include "tests/sim/scenario/data_files.h"

namespace ballast::sim {
namespace {

std::vector<Override> overrides(std::initializer_list<std::string_view> assignments) {
  std::vector<Override> out;
  for (const auto assignment : assignments) out.push_back(parse_override(assignment).value());
  return out;
}

Scenario parse_one(std::string_view text, std::initializer_list<std::string_view> set = {}) {
  return parse_scenario(text, "x.json", overrides(set)).common;
}

TEST(ScenarioFile, WithoutFieldsHasTheDefaults) {
  EXPECT_EQ(to_json(parse_one(sample("minimal.json"))), to_json(Scenario{}));
}

TEST(ScenarioFile, GivesEveryFieldToItsMember) {
  const Scenario s = parse_one(sample("everything.json"));
  EXPECT_EQ(s.seed, 18446744073709551615u);
  EXPECT_EQ(s.model.moe.router.score, ScoreFunction::softmax);
  EXPECT_EQ(s.model.moe.shared_inner, 28u);
  EXPECT_EQ(s.model.embedding_offset, -2.0);
  EXPECT_EQ(s.tokens.exponent, 1.1);
  EXPECT_EQ(s.balancer.quantile.update, UpdateCadence::forward);
  EXPECT_EQ(s.training.steps, 100u);  // written 1e2
  EXPECT_EQ(s.training.restart_after, (std::vector<std::size_t>{1, 100}));
  EXPECT_FALSE(s.diagnostics);
  ASSERT_EQ(s.expect.size(), 2u);
  EXPECT_EQ(s.expect[0].until, 99u);
  EXPECT_FALSE(s.expect[0].at_least);
  EXPECT_EQ(s.expect[1].aggregate, Aggregate::last);
}

TEST(ScenarioFile, ResolvedReadsAsItself) {
  for (const char* name : {"minimal.json", "everything.json", "variants.json"}) {
    const ScenarioFile file = parse_scenario(sample(name), name);
    const ScenarioFile again = parse_scenario(to_json(file).dump(2), "resolved");
    EXPECT_EQ(to_json(again).dump(), to_json(file).dump());
    const auto runs = expand(file), runs_again = expand(again);
    ASSERT_EQ(runs.size(), runs_again.size());
    for (std::size_t i = 0; i < runs.size(); ++i) {
      EXPECT_EQ(to_json(runs[i]).dump(), to_json(runs_again[i]).dump());
    }
  }
}

TEST(ScenarioFile, LeavesOutOfTheResolvedOneWhatHasNoMeaning) {
  const Json text = to_json(parse_one(R"({"ballast": 1, "tokens": {"source": "text"}})"));
  // source, sequence_length, padding, file, and the four fields of patterns
  EXPECT_EQ(text.at("tokens").size(), 8u);
  EXPECT_TRUE(text.at("tokens").contains("file"));
}

TEST(Overrides, AreJsonOrElseText) {
  const Scenario s = parse_one(
      sample("minimal.json"), {"training.steps=50", "model.renormalize=false", "tokens.source=text",
                               "tokens.file=a=b.txt", "name=17", "balancer.estimator=\"exact\"",
                               "training.overflow_steps=[1,3]", "tokens.padding=0.25"});
  EXPECT_EQ(s.training.steps, 50u);
  EXPECT_FALSE(s.model.moe.router.renormalize);
  EXPECT_EQ(s.tokens.source, TokenSourceKind::text);
  EXPECT_EQ(s.tokens.file, (std::filesystem::current_path() / "a=b.txt").string());
  EXPECT_EQ(s.name, "17");
  EXPECT_EQ(s.balancer.quantile.estimator, QuantileEstimatorKind::exact);
  EXPECT_EQ(s.training.overflow_steps, (std::vector<std::size_t>{1, 3}));
  EXPECT_EQ(s.tokens.padding, 0.25);
}

TEST(Overrides, NeedAnEqualsSign) {
  EXPECT_FALSE(parse_override("training.steps"));
  EXPECT_FALSE(parse_override("=5"));
  EXPECT_EQ(parse_override("name=")->value, "");
}

TEST(Overrides, MakeWhatHasNoMeaningBesideThemFallAway) {
  const Scenario s = parse_one(R"({"ballast": 1, "tokens": {"sigma": 2, "vocabulary": 99}})",
                               {"tokens.source=constant"});
  EXPECT_EQ(s.tokens.vocabulary, 99u);
  EXPECT_EQ(s.tokens.sigma, TokenSettings{}.sigma);
}

TEST(Overrides, TheLastOneOfAFieldCounts) {
  EXPECT_EQ(parse_one(sample("minimal.json"), {"seed=2", "seed=3"}).seed, 3u);
}

TEST(Variants, AreRunsWithSomeFieldsSetOtherwise) {
  const auto runs = expand(parse_scenario(sample("variants.json"), "variants.json"));
  ASSERT_EQ(runs.size(), 4u);
  EXPECT_EQ(runs[0].name, "unbalanced");
  EXPECT_EQ(runs[0].description, "its own");
  EXPECT_EQ(runs[0].balancer.kind, BalancerKind::none);
  EXPECT_EQ(runs[0].training.steps, 30u);
  ASSERT_EQ(runs[0].expect.size(), 2u);
  EXPECT_EQ(runs[0].expect[0].metric, "loss");
  EXPECT_EQ(runs[0].expect[1].metric, "dead_experts");

  EXPECT_EQ(runs[1].description, "common");
  EXPECT_EQ(runs[1].tokens.frequency, FrequencyLaw::zipf);
  EXPECT_EQ(runs[1].tokens.sigma, TokenSettings{}.sigma);  // that of the common part fell away
  EXPECT_EQ(runs[1].expect.size(), 1u);
  EXPECT_EQ(runs[2].tokens.source, TokenSourceKind::text);
  EXPECT_EQ(runs[3].tokens.sigma, 1.5);
  EXPECT_EQ(runs[3].balancer.kind, BalancerKind::quantile);
}

TEST(Files, AreRelativeToTheFileThatNamesThemAndThenAbsolute) {
  const std::string text = R"({"ballast": 1, "mode": "router_only",
      "tokens": {"source": "text", "file": "sub/../t.txt"},
      "scores": {"preference": "recorded_rows", "file": "/abs/r.json"},
      "schedule": [{"from": 2, "set": {"scores.file": "s.json"}}],
      "variants": [{"name": "a", "set": {"scores.file": "../v.json"}}]})";
  const ScenarioFile file = parse_scenario(text, "/some/where/x.json");
  const Scenario a = expand(file).front();
  EXPECT_EQ(a.tokens.file, "/some/where/t.txt");
  EXPECT_EQ(a.scores.file, "/some/v.json");
  EXPECT_EQ(a.schedule.front().set.at("scores.file"), R"("/some/where/s.json")");
  EXPECT_EQ(files_of(a),
            (std::vector<std::string>{"/some/where/t.txt", "/some/v.json", "/some/where/s.json"}));
  // What is written can be read from anywhere.
  const Json written = to_json(file);
  EXPECT_EQ(to_json(parse_scenario(written.dump(), "/else/y.json")), written);
  EXPECT_EQ(files_of(Scenario{}), std::vector<std::string>{}) << "no file is in force";
}

TEST(Files, AreToldApartByWhatTheyHold) {
  const std::string name =
      (std::filesystem::temp_directory_path() / "ballast-content-digest").string();
  const auto digest = [&](const std::string& text) {
    std::ofstream(name) << text;
    return content_digest({name});
  };
  EXPECT_NE(digest("a"), digest("b"));
  EXPECT_EQ(digest("a"), digest("a"));
  std::filesystem::remove(name);
  EXPECT_EQ(content_digest({name}).size(), 32u) << "whoever reads it says that it is not there";
  EXPECT_EQ(content_digest({}), "");
}

TEST(Variants, YieldToOverrides) {
  const auto set = overrides({"training.steps=7", "tokens.sigma=0.5"});
  const auto runs = expand(parse_scenario(sample("variants.json"), "variants.json", set));
  for (const Scenario& run : runs) EXPECT_EQ(run.training.steps, 7u) << run.name;
  EXPECT_EQ(runs[0].tokens.sigma, 0.5);
  EXPECT_EQ(runs[1].tokens.exponent, 0.9);
}

TEST(Variants, AreEachCheckedAsAWholeAndTheCommonPartIsNot) {
  const std::string text = R"({"ballast": 1, "model": {"routed_experts": 4, "top_k": 4},
      "variants": [{"name": "a", "set": {"balancer.kind": "none"}}]})";
  EXPECT_EQ(expand(parse_scenario(text, "x.json")).size(), 1u);
}

TEST(Variants, CanLackAll) {
  EXPECT_EQ(expand(parse_scenario(sample("minimal.json"), "x.json")).size(), 1u);
  EXPECT_EQ(expand(parse_scenario(R"({"ballast": 1, "variants": []})", "x.json")).size(), 1u);
}

}  // namespace
}  // namespace ballast::sim
