#include "sim/simulation/verdict.h"

#include <gtest/gtest.h>

#include "tests/sim/support/small_scenario.h"

namespace ballast::sim {
namespace {

const Simulation& a_run() {
  static const auto run = test::simulated([] {
    auto scenario = test::small_scenario();
    scenario.training.evaluate_every = 6;
    return scenario;
  }());
  return *run;
}

double loss(std::size_t step) { return a_run().steps()[step - 1].figures.at("loss"); }

TEST(Verdict, EveryIsDecidedByTheWorstStep) {
  const auto outcome = judge({.metric = "loss", .from = 2, .until = 4, .at_most = 0.0}, a_run());
  EXPECT_EQ(outcome.verdict, Verdict::fail);
  EXPECT_EQ(outcome.value, std::max({loss(2), loss(3), loss(4)}));
}

TEST(Verdict, AnyIsDecidedByTheBestStep) {
  const double lowest = std::min({loss(2), loss(3), loss(4)});
  const auto outcome = judge(
      {.metric = "loss", .aggregate = Aggregate::any, .from = 2, .until = 4, .at_most = lowest}, a_run());
  EXPECT_EQ(outcome.verdict, Verdict::pass);
  EXPECT_EQ(outcome.value, lowest);
}

TEST(Verdict, LastLooksAtTheLastStepAndMeanAtAll) {
  EXPECT_EQ(judge({.metric = "loss", .aggregate = Aggregate::last, .at_least = 0.0}, a_run()).value, loss(12));
  EXPECT_DOUBLE_EQ(
      *judge({.metric = "loss", .aggregate = Aggregate::mean, .from = 11, .at_least = 0.0}, a_run()).value,
      (loss(11) + loss(12)) / 2.0);
}

TEST(Verdict, BothBoundsHold) {
  EXPECT_EQ(judge({.metric = "loss", .at_most = 100.0, .at_least = 0.0}, a_run()).verdict, Verdict::pass);
  EXPECT_EQ(judge({.metric = "loss", .at_most = 100.0, .at_least = 50.0}, a_run()).verdict, Verdict::fail);
}

TEST(Verdict, EvaluationLossIsTakenFromEvaluations) {
  EXPECT_EQ(judge({.metric = "eval_loss", .aggregate = Aggregate::last, .at_least = 0.0}, a_run()).step, 12u);
  EXPECT_EQ(judge({.metric = "eval_loss", .from = 7, .until = 11, .at_least = 0.0}, a_run()).verdict,
            Verdict::unknown);
}

TEST(Verdict, RunThatEndsTooEarlyIsUnknownUnlessItFailedBefore) {
  EXPECT_EQ(judge({.metric = "loss", .from = 13, .at_most = 100.0}, a_run()).verdict, Verdict::unknown);
  EXPECT_EQ(judge({.metric = "loss", .from = 5, .until = 13, .at_most = 100.0}, a_run()).verdict,
            Verdict::unknown);
  EXPECT_EQ(judge({.metric = "loss", .from = 5, .until = 13, .at_most = 0.0}, a_run()).verdict,
            Verdict::fail);
  EXPECT_EQ(judge({.metric = "loss", .from = 5, .until = 12, .at_most = 100.0}, a_run()).verdict,
            Verdict::pass);
}

TEST(Verdict, OverallIsTheWorstAndUnknownWithoutExpectations) {
  const ExpectationOutcome pass{.expectation = {}, .verdict = Verdict::pass, .value = {}, .step = {}};
  const ExpectationOutcome fail{.expectation = {}, .verdict = Verdict::fail, .value = {}, .step = {}};
  const ExpectationOutcome unknown{.expectation = {}, .verdict = Verdict::unknown, .value = {}, .step = {}};
  EXPECT_EQ(overall({}), Verdict::unknown);
  EXPECT_EQ(overall(std::vector{pass, pass}), Verdict::pass);
  EXPECT_EQ(overall(std::vector{pass, unknown}), Verdict::unknown);
  EXPECT_EQ(overall(std::vector{unknown, fail, pass}), Verdict::fail);
}

}  // namespace
}  // namespace ballast::sim
