#include "props/cases/sense.h"

#include <gtest/gtest.h>

#include "props/cases/generate.h"

namespace ballast::props {
namespace {

Case case_of(std::vector<Request> history) {
  Case input;
  input.open.model.layers = 2;
  input.open.model.routed_experts = 3;
  input.open.ranks = 2;
  input.history = std::move(history);
  return input;
}

Forward forward_of(Mode mode, float logit = 1.0f) {
  return {.layer = 1, .rank = 1, .mode = mode, .logits = Matrix<float>(2, 3, logit), .mask = {}};
}

TEST(MakesSense, IsWhatGeneratorsGive) {
  for (std::uint64_t i = 0; i < 2000; ++i) {
    Stream stream = Stream(11).child(i);
    EXPECT_TRUE(makes_sense(generate_case(stream, i % 101, {.nonfinite = true})));
    EXPECT_TRUE(makes_sense(generate_routing_case(stream, i % 101, 3, false)));
  }
}

TEST(MakesSense, IsNotForRequestsThatCannotBeAnswered) {
  EXPECT_TRUE(makes_sense(case_of({forward_of(Mode::train)})));
  Forward forward = forward_of(Mode::train);
  forward.layer = 2;
  EXPECT_FALSE(makes_sense(case_of({forward})));
  forward = forward_of(Mode::train);
  forward.rank = 2;
  EXPECT_FALSE(makes_sense(case_of({forward})));
  forward = forward_of(Mode::train);
  forward.mask = {1};
  EXPECT_FALSE(makes_sense(case_of({forward})));
  EXPECT_FALSE(makes_sense(case_of({SetBiases{{{1, 2, 3}}}})));
  EXPECT_FALSE(makes_sense(case_of({Load{0}})));
  EXPECT_TRUE(makes_sense(case_of({Save{}, Load{0}})));
}

TEST(MakesSense, FollowsACollector) {
  const Collector enter{CollectorAction::enter, true}, read{CollectorAction::snapshot, true},
      leave{CollectorAction::exit, true};
  EXPECT_TRUE(makes_sense(case_of({enter, read, leave, enter, read})));
  EXPECT_FALSE(makes_sense(case_of({read})));
  EXPECT_FALSE(makes_sense(case_of({enter, enter})));
  EXPECT_FALSE(makes_sense(case_of({enter, leave, leave})));
}

TEST(MakesSense, WantsARecomputationToRepeatSomething) {
  EXPECT_TRUE(makes_sense(case_of({forward_of(Mode::train), forward_of(Mode::recompute)})));
  EXPECT_FALSE(makes_sense(case_of({forward_of(Mode::recompute)})));
  EXPECT_FALSE(makes_sense(case_of({forward_of(Mode::train), forward_of(Mode::recompute, 2.0f)})));
}

TEST(Adapted, LeavesOutWhatASubjectCannotFollow) {
  Forward masked = forward_of(Mode::train);
  masked.mask = {0, 1};
  masked.logits(1, 2) = 7.0f;
  const Case input = case_of({Collector{CollectorAction::enter, true}, masked, Step{true}, Save{},
                              forward_of(Mode::eval)});
  const Case reduced = adapted(input, {Capability::route, Capability::balance});
  ASSERT_EQ(reduced.history.size(), 3u);
  const auto& forward = std::get<Forward>(reduced.history[0]);
  EXPECT_TRUE(forward.mask.empty());
  ASSERT_EQ(forward.logits.rows(), 1u);
  EXPECT_EQ(forward.logits(0, 2), 7.0f);
  EXPECT_EQ(forward.rank, 0u);
  EXPECT_EQ(reduced.open.ranks, 1u);
  EXPECT_EQ(adapted(input, {Capability::route}).history.size(), 1u);
}

}  // namespace
}  // namespace ballast::props
