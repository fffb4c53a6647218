#include "sim/scores/recorded_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "sim/input_error.h"
#include "sim/scenario/schedule.h"
#include "sim/scores/token_rows.h"
#include "sim/simulation/records.h"
#include "sim/tokens/make_source.h"
#include "tests/sim/support/small_scenario.h"
#include "tests/support/paths.h"
#include "tests/support/shared_data.h"

namespace ballast::sim {
namespace {

using Ids = std::vector<std::int32_t>;

std::string sample(const std::string& name) {
  return ballast::test::source_dir() + "/tests/data/recordings/" + name;
}

Ids choices(const RecordedRows& rows, std::size_t layer, std::size_t token) {
  const auto chosen = rows.choices(layer, token);
  return {chosen.begin(), chosen.end()};
}

/// Routers without balancing under a recording; a step is one sequence of so many tokens, so with
/// as many as the recording has each is seen once.
Scenario replaying(const std::string& file, std::size_t layers, std::size_t experts,
                   std::size_t top_k, std::size_t tokens) {
  Scenario scenario;
  scenario.mode = Mode::router_only;
  scenario.model.layers = layers;
  scenario.model.moe.router.routed_experts = experts;
  scenario.model.moe.router.top_k = top_k;
  scenario.balancer.kind = BalancerKind::none;
  scenario.scores.preference = PreferenceLaw::recorded_rows;
  scenario.scores.file = file;
  scenario.tokens.sequence_length = tokens;
  scenario.training.sequences = 1;
  scenario.training.steps = 2;
  return scenario;
}

TEST(RecordedRows, AreTokensWithTheirChoicesInEachLayer) {
  const RecordedRows rows(sample("rows.jsonl"), 4);
  ASSERT_EQ(rows.layers(), 2u);
  ASSERT_EQ(rows.tokens(), 5u);
  EXPECT_EQ(choices(rows, 0, 0), (Ids{0, 1}));
  EXPECT_EQ(choices(rows, 1, 1), (Ids{2, 0}));
  EXPECT_EQ(choices(rows, 0, 4), (Ids{2, 3})) << "of the second sequence";
  const RecordedRows selections(sample("selections.json"), 4);
  EXPECT_EQ(selections.tokens(), 3u);
  EXPECT_EQ(choices(selections, 1, 2), (Ids{2}));
}

TEST(RecordedRows, LeaveTheWarmUpOut) {
  const RecordedRows rows(sample("routes.jsonl"), 6);
  EXPECT_EQ(rows.tokens(), 4u);
  EXPECT_EQ(choices(rows, 0, 0), (Ids{0, 1}));
}

TEST(RecordedRows, AreBestFirstByTheirWeightsAndHaveGapsWhereRowsAreMissing) {
  const auto file = std::filesystem::temp_directory_path() / "ballast-recorded-rows.jsonl";
  std::ofstream(file)
      << R"({"layer": 0, "experts": [3, 1], "gating_probs": [0.4, 0.6], "token_idx": 0}
{"layer": 0, "experts": [2, 0], "gating_probs": [0.5, 0.5], "token_idx": 1}
{"layer": 1, "experts": [0, 3], "gating_probs": [0.5, 0.5], "token_idx": 1}
)";
  const RecordedRows rows(file.string(), 4);
  EXPECT_EQ(choices(rows, 0, 0), (Ids{1, 3}));
  EXPECT_EQ(choices(rows, 1, 0), Ids{});
  EXPECT_EQ(choices(rows, 1, 1), (Ids{0, 3})) << "the token of index 1, as in layer 0";
  std::filesystem::remove(file);
}

TEST(RecordedRows, RefuseTablesOfLoadsMoreExpertsAndNoFile) {
  const auto error = [](const std::string& file, std::size_t experts) -> std::string {
    try {
      RecordedRows(file, experts);
      return "no error";
    } catch (const InputError& caught) {
      return caught.what();
    }
  };
  EXPECT_NE(error(sample("loads.csv"), 64).find("it holds no choices of single tokens"),
            std::string::npos);
  EXPECT_NE(
      error(sample("routes.jsonl"), 5).find("it has 6 experts a layer, and the scenario has 5"),
      std::string::npos);
  EXPECT_NE(error(sample("absent.jsonl"), 5).find("absent.jsonl"), std::string::npos);
}

TEST(Choose, ExchangesLogitsSoThatTheChosenAreTheLargestInOrder) {
  std::vector<float> logits = {5, 1, 4, 3, 2};
  choose(Ids{3, 0}, logits);
  EXPECT_EQ(logits, (std::vector<float>{4, 1, 3, 5, 2})) << "expert 2 made room";
  choose(Ids{}, logits);
  EXPECT_EQ(logits, (std::vector<float>{4, 1, 3, 5, 2}));
  choose(Ids{4, 1}, logits);
  EXPECT_EQ(logits, (std::vector<float>{1, 4, 3, 2, 5})) << "the better one keeps the better value";
  choose(Ids{0, 1, 2, 3, 4}, logits);
  EXPECT_EQ(logits, (std::vector<float>{5, 4, 3, 2, 1}));
}

TEST(RecordedRows, AreRoutedAsTheyWereRecorded) {
  const auto run = test::simulated(replaying(sample("rows.jsonl"), 4, 4, 2, 5));
  for (const StepRecord& step : run->steps()) {
    EXPECT_EQ(step.loads[0], (std::vector<std::int64_t>{1, 3, 4, 2}));
    EXPECT_EQ(step.loads[1], (std::vector<std::int64_t>{2, 3, 2, 3}));
    EXPECT_EQ(step.loads[2], step.loads[0]) << "the layers of the recording in turn";
  }
}

/// A token that its id drives is a drawn one, under the loads of the recording.
TEST(RecordedRows, MixWithDrawnOnesByTheirShareAndOverTheSteps) {
  // Expert 0 with 1, or 2 with 3, and never any of the others.
  const auto file = std::filesystem::temp_directory_path() / "ballast-two-rows.jsonl";
  std::ofstream(file) << R"({"type": "meta", "top_k": 2, "num_experts": 8}
{"type": "route", "req_id": "r", "token_idx": 0, "layer": 0, "topk_ids": [0, 1]}
{"type": "route", "req_id": "r", "token_idx": 1, "layer": 0, "topk_ids": [2, 3]}
)";
  Scenario scenario = replaying(file.string(), 1, 8, 2, 4000);
  scenario.tokens.vocabulary = 20'000;
  scenario.tokens.frequency = FrequencyLaw::uniform;
  scenario.scores.token_driven = 0.75;
  scenario.schedule = {{.from = 2, .over = 0, .set = {{"scores.token_driven", "0.25"}}}};
  for (const auto& [step, share] : {std::pair(0, 0.25), std::pair(1, 0.75)}) {
    const ScoreSettings settings = settings_at(scenario, static_cast<std::size_t>(step) + 1).scores;
    const auto source = make_source(scenario.tokens, 1);
    const auto batch = make_batch(*source, {.step = static_cast<std::uint64_t>(step)}, 1);
    const TokenRows rows =
        token_rows(settings, batch, {.step = static_cast<std::uint64_t>(step)}, 1);
    const double seen =
        static_cast<double>(std::ranges::count(rows.kinds, TokenKind::recorded)) / 4000;
    EXPECT_NEAR(seen, share, 5 * std::sqrt(share * (1 - share) / 4000)) << step;
  }
  const auto run = test::simulated(scenario);
  for (const StepRecord& step : run->steps()) {
    for (std::size_t j = 4; j < 8; ++j) EXPECT_LT(step.loads[0][j], 40) << "no row has it";
  }
  std::filesystem::remove(file);
}

TEST(RecordedRows, AreRepeatedAlongASequenceByItsMemory) {
  ScoreSettings settings{.preference = PreferenceLaw::recorded_rows, .sequence_memory = 0.5};
  TokenBatch batch{.sequences = 1, .length = 2000, .inputs = {}, .targets = {}, .valid = {}};
  batch.inputs.assign(2000, 0);
  const TokenRows rows = token_rows(settings, batch, {}, 1);
  std::size_t again = 0;
  for (std::size_t t = 1; t < 2000; ++t) {
    EXPECT_EQ(rows.keys[t] == rows.keys[t - 1], rows.recorded[t] == rows.recorded[t - 1]);
    again += rows.recorded[t] == rows.recorded[t - 1] ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(again) / 1999, 0.5, 5 * 0.5 / std::sqrt(1999.0));
}

/// The recordings by others have the figures that an independent program computed of them
/// (figures_per_layer.csv beside them).
TEST(RecordedRows, OfOthersHaveTheSkewThatWasComputedOfThem) {
  SKIP_WITHOUT_SHARED_DATA();
  // Layer 0 lacks one of the 338 tokens, which is then a drawn one.
  const auto mixtral = test::simulated(replaying(
      ballast::test::shared_data_dir() + "/mixtral-8x7b-routing/humaneval_2_routing.jsonl", 32, 8,
      2, 338));
  const std::vector<std::int64_t> recorded = {65, 65, 85, 87, 79, 129, 87, 77};
  for (const StepRecord& step : mixtral->steps()) {
    std::int64_t more = 0;
    for (std::size_t j = 0; j < 8; ++j) {
      EXPECT_GE(step.loads[0][j], recorded[j]);
      more += step.loads[0][j] - recorded[j];
    }
    EXPECT_EQ(more, 2);
    EXPECT_NEAR(load_figures({step.loads[1]}).at("e_max_violation:mean"), 0.443787, 1e-6);
  }
  // 2,048 rows of a warm-up are left out.
  const auto olmoe = test::simulated(
      replaying(ballast::test::shared_data_dir() + "/olmoe-live-log-polluted/moe_routes.jsonl", 1,
                64, 8, 4471));
  EXPECT_NEAR(load_figures(olmoe->steps()[1].loads).at("e_max_violation:mean"), 4.083427, 1e-6);
  EXPECT_NEAR(load_figures(olmoe->steps()[1].loads).at("load_cv"), 0.686221, 1e-6);
}

/// Quantile balancing levels them, although no logit is drawn.
TEST(RecordedRows, CanBeBalanced) {
  SKIP_WITHOUT_SHARED_DATA();
  Scenario scenario =
      replaying(ballast::test::shared_data_dir() + "/olmoe-live-log-polluted/moe_routes.jsonl", 1,
                64, 8, 4471);
  scenario.balancer.kind = BalancerKind::quantile;
  scenario.training.steps = 6;
  const auto run = test::simulated(scenario);
  EXPECT_LT(load_figures(run->steps().back().loads).at("e_max_violation:mean"), 0.5);
}

}  // namespace
}  // namespace ballast::sim
