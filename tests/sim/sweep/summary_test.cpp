#include "sim/sweep/summary.h"

#include <gtest/gtest.h>

#include <limits>

#include "sim/sweep/columns.h"

namespace ballast::sim {
namespace {

using Values = std::vector<std::optional<double>>;

Sweep two_points_of_three_seeds() {
  Sweep sweep{.name = "s",
              .description = {},
              .origin = {},
              .base = {},
              .axes = {"a, b"},
              .points = {},
              .scenarios = {Scenario{}, Scenario{}},
              .seeds = 3};
  sweep.points.push_back({.axes = {{"a, b", "x \"1\""}}, .settings = {}});
  sweep.points.push_back({.axes = {{"a, b", 2}}, .settings = {}});
  return sweep;
}

/// All columns of run i are `values[i]`.
std::vector<RunResult> results(const Values& values) {
  std::vector<RunResult> all;
  for (const auto& value : values) {
    all.push_back({.run = all.size(), .values = Values(run_columns().size(), value)});
  }
  return all;
}

TEST(Spread, IsMedianLeastAndMost) {
  const Spread odd = spread_of({3.0, 1.0, 2.0}, true);
  EXPECT_EQ(odd.median, 2.0);
  EXPECT_EQ(odd.least, 1.0);
  EXPECT_EQ(odd.most, 3.0);
  EXPECT_EQ(spread_of({4.0, 1.0, 2.0, 3.0}, true).median, 2.5);
}

TEST(Spread, AMissingValueIsWorseThanAnyNumber) {
  const Spread one_of_three = spread_of({std::nullopt, 1.0, 2.0}, true);
  EXPECT_EQ(one_of_three.median, 2.0);
  EXPECT_EQ(one_of_three.values, 2u);
  EXPECT_EQ(spread_of({std::nullopt, 1.0, 2.0}, false).median, 1.0);
  EXPECT_EQ(spread_of({std::nullopt, 1.0, std::nullopt}, true).median, std::nullopt);
  EXPECT_EQ(spread_of({std::nullopt, 1.0}, true).median, std::nullopt);
  EXPECT_EQ(spread_of({}, true).median, std::nullopt);
}

TEST(Summary, RanksPointsByTheirMedianAndPutsThoseWithoutLast) {
  const Sweep sweep = two_points_of_three_seeds();
  auto points = summarize(results({5.0, 4.0, 6.0, 1.0, 9.0, 2.0}), sweep);
  rank(points, 0);
  EXPECT_EQ(points[0].point, 1u);
  points = summarize(results({5.0, 4.0, 6.0, 1.0, std::nullopt, std::nullopt}), sweep);
  rank(points, 0);
  EXPECT_EQ(points[0].point, 0u);
}

TEST(Summary, CountsFailedRunsAndLeavesThemOut) {
  const Sweep sweep = two_points_of_three_seeds();
  auto all = results({5.0, 4.0, 6.0, 1.0, 9.0, 2.0});
  all[1] = {.run = 1, .error = "no memory"};
  const auto points = summarize(all, sweep);
  EXPECT_EQ(points[0].errors, 1u);
  EXPECT_EQ(points[0].first_error, "no memory");
  EXPECT_EQ(points[0].columns[0].median, 5.5);
  const auto axes = summarize_axes(all, sweep);
  ASSERT_EQ(axes.size(), 2u);
  EXPECT_EQ(axes[0].runs, 2u);
  EXPECT_EQ(axes[1].columns[0].median, 2.0);
}

TEST(Summary, TheVerdictOfAPointIsTheWorstOfItsRuns) {
  const Sweep sweep = two_points_of_three_seeds();
  auto all = results({5.0, 4.0, 6.0, 1.0, 9.0, 2.0});
  EXPECT_EQ(summarize(all, sweep)[0].verdict, std::nullopt);
  for (auto& result : all) result.expected = true, result.verdict = Verdict::pass;
  all[0].verdict = Verdict::unknown;
  EXPECT_EQ(summarize(all, sweep)[0].verdict, Verdict::unknown);
  all[1].verdict = Verdict::fail;
  EXPECT_EQ(summarize(all, sweep)[0].verdict, Verdict::fail);
  EXPECT_EQ(summarize(all, sweep)[1].verdict, Verdict::pass);
}

TEST(Summary, CountsTheKindsOfCollapseAndNamesTheCommonest) {
  const Sweep sweep = two_points_of_three_seeds();
  auto all = results({5.0, 4.0, 6.0, 1.0, 9.0, 2.0});
  for (const std::size_t run : {0u, 2u, 3u, 4u}) all[run].collapse_kind = "none";
  all[1].collapse_kind = all[5].collapse_kind = "drift";
  auto points = summarize(all, sweep);
  EXPECT_EQ(points[0].collapse_kinds,
            (std::map<std::string, std::size_t>{{"drift", 1}, {"none", 2}}));
  EXPECT_EQ(points[0].collapse_kind(), "none");
  all[0] = {.run = 0, .error = "no memory"};
  EXPECT_EQ(summarize(all, sweep)[0].collapse_kind(), "drift") << "as many as have none";
}

TEST(Summary, TheCsvQuotesWhatNeedsIt) {
  const Sweep sweep = two_points_of_three_seeds();
  auto all = results({0.5, std::nullopt, 6.0, 1.0, 9.0, 2.0});
  const std::string csv = results_csv(all, sweep);
  EXPECT_EQ(csv.substr(0, csv.find('\n')),
            "run,point,seed,\"a, b\",verdict,error,collapse_kind,final_max_violation,"
            "worst_max_violation,steps_to_balance,dead_experts,collapse_onset,loss");
  EXPECT_NE(csv.find("\n0,0,1,\"x \"\"1\"\"\",,,,0.5,0.5,0.5,0.5,0.5,0.5\n"), std::string::npos)
      << csv;
  EXPECT_NE(csv.find("\n1,0,2,\"x \"\"1\"\"\",,,,,,,,,\n"), std::string::npos) << csv;
}

TEST(Summary, ALineOfResultsIsReadBackAsItWas) {
  const Sweep sweep = two_points_of_three_seeds();
  RunResult result{.run = 4,
                   .error = std::nullopt,
                   .expected = true,
                   .verdict = Verdict::fail,
                   .digest = "d",
                   .collapse_kind = "none",
                   .values = {0.1, std::nullopt, 1e-300, 3.0,
                              std::numeric_limits<double>::infinity(), 2.0 / 3.0}};
  const auto back = read_result(Json::parse(to_json(result, sweep).dump()), sweep);
  ASSERT_TRUE(back);
  EXPECT_EQ(to_json(*back, sweep), to_json(result, sweep));
  EXPECT_EQ(back->values, result.values);
  EXPECT_FALSE(read_result(Json::parse("{}"), sweep));
  EXPECT_FALSE(read_result(Json::parse("[1]"), sweep));
  EXPECT_FALSE(read_result(Json::parse(R"({"run": 6, "error": "x"})"), sweep));
  Json other = to_json(result, sweep);
  other.erase("loss");
  EXPECT_FALSE(read_result(other, sweep));
}

}  // namespace
}  // namespace ballast::sim
