#include "props/laws/support.h"

#include <gtest/gtest.h>

#include <deque>
#include <limits>

namespace ballast::props {
namespace {

/// Gives prepared answers, one after the other.
class Scripted final : public Subject {
 public:
  explicit Scripted(std::deque<Answer> answers, Answer opened = Done{})
      : answers_(std::move(answers)), opened_(std::move(opened)) {
    using enum Capability;
    hello_.name = "scripted";
    hello_.supports = {route, balance, collect, metrics, combine, state, mask, recompute, ranks};
  }
  const Hello& hello() override { return hello_; }
  Answer open(const Open&) override { return opened_; }
  Answer ask(const Request&) override {
    Answer next = answers_.front();
    answers_.pop_front();
    return next;
  }

 private:
  Hello hello_;
  std::deque<Answer> answers_;
  Answer opened_;
};

Case case_of(History history) {
  Case input;
  input.open.model.routed_experts = 3;
  input.open.model.top_k = 2;
  input.history = std::move(history);
  return input;
}

Outcome outcome_of(const Case& input, Answer answer, Answer opened = Done{}) {
  Scripted subject({std::move(answer)}, std::move(opened));
  return judged([](Subject& s, const Case& c, Edges&) { converse(s, c.open, c.history); })(subject,
                                                                                           input);
}

Forward one_token(float logit = 0.0f) {
  return {.mode = Mode::eval, .logits = Matrix<float>(1, 3, logit), .mask = {}};
}

TEST(Converse, TakesWhatTheRequestCallsFor) {
  using Kind = Outcome::Kind;
  EXPECT_EQ(outcome_of(case_of({one_token()}), Routed{{{2, 0}}, {{0.5, 0.5}}}).kind, Kind::holds);
  EXPECT_EQ(outcome_of(case_of({Step{}}), BiasesAnswer{{{0, 0, 0}}}).kind, Kind::holds);
  EXPECT_EQ(outcome_of(case_of({Save{}}), Done{}).kind, Kind::holds);
}

TEST(Converse, BreaksTheLawForAnythingElse) {
  const std::vector<std::pair<Request, Answer>> wrong = {
      {one_token(), Done{}},
      {one_token(), Routed{{}, {}}},
      {one_token(), Routed{{{0, 1, 2}}, {{1, 1, 1}}}},
      {one_token(), Routed{{{0, 1}}, {{1}}}},
      {one_token(), Routed{{{0, 0}}, {{1, 1}}}},
      {one_token(), Routed{{{0, 3}}, {{1, 1}}}},
      {one_token(), Routed{{{-1, 0}}, {{1, 1}}}},
      {one_token(), Refusal{"invalid", "no"}},
      {Step{}, Done{}},
      {Step{}, BiasesAnswer{{{0, 0}}}},
      {Step{}, BiasesAnswer{{{0, 0, 0}, {0, 0, 0}}}},
      {Save{}, BiasesAnswer{{{0, 0, 0}}}},
      {MetricsOf{}, Done{}},
  };
  for (const auto& [request, answer] : wrong) {
    const Outcome outcome = outcome_of(case_of({request}), answer);
    EXPECT_EQ(outcome.kind, Outcome::Kind::broken) << outcome.where;
    EXPECT_NE(outcome.expected, outcome.seen);
  }
}

TEST(Converse, AsksNothingOfThePaddingButItsShape) {
  Forward forward = one_token();
  forward.mask = {0};
  EXPECT_EQ(outcome_of(case_of({forward}), Routed{{{-1, -1}}, {{0, 0}}}).kind,
            Outcome::Kind::holds);
}

TEST(Converse, LetsForwardsBeRefusedThatAreNotFinite) {
  const Case input = case_of({one_token(std::numeric_limits<float>::quiet_NaN())});
  EXPECT_EQ(outcome_of(input, Refusal{"invalid", "NaN"}).kind, Outcome::Kind::holds);
}

TEST(Converse, IsUnsupportedWhereTheSubjectSaysSo) {
  EXPECT_EQ(outcome_of(case_of({one_token()}), Refusal{"unsupported", ""}).kind,
            Outcome::Kind::unsupported);
  EXPECT_EQ(outcome_of(case_of({one_token()}), Done{}, Refusal{"unsupported", ""}).kind,
            Outcome::Kind::unsupported);
  EXPECT_EQ(outcome_of(case_of({one_token()}), Done{}, Refusal{"invalid", ""}).kind,
            Outcome::Kind::broken);
}

TEST(Judged, DiscardsCasesThatMakeNoSense) {
  EXPECT_EQ(outcome_of(case_of({Load{0}}), Done{}).kind, Outcome::Kind::discarded);
}

TEST(Records, ComeInTheOrderOfTheNumbersInTheirNames) {
  Snapshot snapshot;
  for (const std::int64_t l : {0, 2, 9, 10, 11}) {
    snapshot.layers["model.layers." + std::to_string(l) + ".moe"].tokens = l;
  }
  std::vector<std::int64_t> order;
  const Answer answer = snapshot;
  for (const auto* record : records_of(answer)) order.push_back(record->tokens);
  EXPECT_EQ(order, (std::vector<std::int64_t>{0, 2, 9, 10, 11}));
}

TEST(Splice, KeepsTheOriginalRequestsAndSaysWhereTheyWent) {
  const Spliced spliced =
      splice({Step{true}, Step{false}}, {{0, Save{}}, {1, Save{}}, {2, Save{}}});
  ASSERT_EQ(spliced.history.size(), 5u);
  EXPECT_EQ(spliced.position, (std::vector<std::size_t>{1, 3}));
  EXPECT_TRUE(std::holds_alternative<Save>(spliced.history[4]));
  EXPECT_FALSE(std::get<Step>(spliced.history[3]).applied);
}

}  // namespace
}  // namespace ballast::props
