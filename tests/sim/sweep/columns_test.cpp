#include "sim/sweep/columns.h"

#include <gtest/gtest.h>

#include <limits>

#include "sim/sweep/run_result.h"
#include "sim/sweep/summary.h"
#include "tests/sim/support/small_scenario.h"

namespace ballast::sim {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

/// Routers alone over one layer of 16 experts, even unless something is changed.
Scenario routers(std::size_t sequences) {
  Scenario scenario;
  scenario.mode = Mode::router_only;
  scenario.model.moe.router.routed_experts = 16;
  scenario.model.moe.router.top_k = 2;
  scenario.scores.preference = PreferenceLaw::uniform;
  scenario.balancer.kind = BalancerKind::none;
  scenario.tokens.sequence_length = 32;
  scenario.training.sequences = sequences;
  scenario.training.steps = 12;
  return scenario;
}

std::optional<double> onset(const Scenario& scenario) {
  const std::size_t column = find_column("collapse_onset").value();
  return run_columns()[column].measure(*test::simulated(scenario));
}

std::string kind(const Scenario& scenario) {
  return result_of(0, *test::simulated(scenario)).collapse_kind;
}

TEST(CollapseColumn, IsTheFirstStepOfACollapseAndItsKind) {
  Scenario scenario = routers(16);
  // From step 7 on nearly all logits of expert 0 are the largest.
  scenario.schedule = {{.from = 7, .over = 0, .set = {{"scores.aligned_share", "1.0"}}}};
  EXPECT_EQ(onset(scenario), 7.0);
  EXPECT_EQ(kind(scenario), "monopoly");
}

TEST(CollapseColumn, TellsARunWithoutOneFromOneThatCannotTell) {
  EXPECT_EQ(onset(routers(16)), never);
  EXPECT_EQ(kind(routers(16)), "none");
  Scenario few = routers(1);
  few.tokens.sequence_length = 1;
  EXPECT_EQ(onset(few), std::nullopt);
  EXPECT_EQ(kind(few), "unknown");
  Scenario alike = routers(16);
  alike.tokens.source = TokenSourceKind::constant;
  alike.scores.token_driven = 1.0;
  EXPECT_EQ(onset(alike), std::nullopt);
  EXPECT_EQ(kind(alike), "input_degenerate");
}

TEST(CollapseColumn, ALateCollapseIsBetterThanAnEarlyOneAndNoneIsBest) {
  const RunColumn& column = run_columns()[find_column("collapse_onset").value()];
  const auto median = [&](std::vector<std::optional<double>> values) {
    return spread_of(std::move(values), column.less_is_better).median;
  };
  EXPECT_EQ(median({5.0, never, never}), never);
  EXPECT_EQ(median({5.0, 9.0, never}), 9.0);
  EXPECT_EQ(median({5.0, never, std::nullopt}), 5.0) << "what cannot be told is worse than any";
  EXPECT_EQ(median({5.0, never}), 5.0) << "half of the runs collapse";
  EXPECT_EQ(median({never, std::nullopt}), std::nullopt);
  EXPECT_EQ(spread_of({5.0, never}, column.less_is_better).half_range(), std::nullopt);
}

TEST(Figure, IsReadBackFromResultsAsItWas) {
  for (const std::optional<double>& figure :
       {std::optional(0.1), std::optional(never), std::optional<double>()}) {
    std::optional<double> back = 3.0;
    EXPECT_TRUE(read_figure(Json::parse(figure_json(figure).dump()), back));
    EXPECT_EQ(back, figure);
  }
  EXPECT_EQ(figure_json(never), "none");
  std::optional<double> nothing;
  EXPECT_FALSE(read_figure("never", nothing));
  EXPECT_FALSE(read_figure(Json::array(), nothing));
}

}  // namespace
}  // namespace ballast::sim
