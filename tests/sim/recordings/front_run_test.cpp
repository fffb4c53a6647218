#include "sim/recordings/front_run.h"

#include <gtest/gtest.h>

namespace ballast::sim {
namespace {

RoutingRow row(std::vector<std::int64_t> experts, std::vector<double> weights) {
  return {.sequence = "",
          .layer = 0,
          .token = std::nullopt,
          .experts = std::move(experts),
          .weights = std::move(weights)};
}

std::int64_t run_length(const std::vector<RoutingRow>& rows, FrontRun& run) {
  std::int64_t line = 0;
  for (const RoutingRow& one : rows) run.extend(one, ++line);
  return run.rows();
}

TEST(FrontRun, EndsAtTheFirstRowThatDiffersForGood) {
  FrontRun run;
  const RoutingRow a = row({0, 1}, {0.5, 0.5});
  EXPECT_EQ(run_length({a, a, row({1, 0}, {0.5, 0.5}), a}, run), 2);
  EXPECT_EQ(run.last_line(), 2);
}

TEST(FrontRun, DiffersWhenAWeightDoes) {
  FrontRun run;
  EXPECT_EQ(run_length({row({0}, {1.0}), row({0}, {0.9999})}, run), 1);
}

TEST(FrontRun, IsAWarmUpFromTheStatedLengthOn) {
  for (const bool weights : {true, false}) {
    const RoutingRow a = row({3}, weights ? std::vector{1.0} : std::vector<double>{});
    const auto least = static_cast<std::size_t>(weights ? FrontRun::min_rows_with_weights
                                                        : FrontRun::min_rows_without_weights);
    FrontRun almost, enough;
    run_length(std::vector<RoutingRow>(least - 1, a), almost);
    run_length(std::vector<RoutingRow>(least, a), enough);
    EXPECT_FALSE(almost.is_warm_up());
    EXPECT_TRUE(enough.is_warm_up());
  }
}

}  // namespace
}  // namespace ballast::sim
