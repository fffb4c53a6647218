#include "sim/replay/frame.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/replay/divergence.h"
#include "sim/replay/fingerprint.h"
#include "sim/replay/recorder.h"
#include "sim/simulation/side_by_side.h"
#include "tests/sim/support/small_scenario.h"

namespace ballast::sim {
namespace {

/// All frames of the run of a scenario.
std::vector<Frame> frames_of(const Scenario& scenario, std::size_t threads = 1) {
  Recorders recorders({&scenario, 1});
  const auto observers = recorders.observers();
  SideBySide runs({&scenario, 1}, threads, observers);
  std::vector<Frame> all = recorders.take();
  for (std::size_t step = 1; step <= runs.steps(); ++step) {
    runs.advance_to(step);
    for (Frame& frame : recorders.take()) all.push_back(std::move(frame));
  }
  for (Frame& frame : Recorders::ends(runs.runs())) all.push_back(std::move(frame));
  return all;
}

Scenario eventful() {
  Scenario scenario = test::small_scenario();
  scenario.training.ranks = 2;
  scenario.training.micro_batches = 2;
  scenario.training.evaluate_every = 5;
  scenario.training.checkpoint_every = 4;
  return scenario;
}

TEST(Frame, IsReadBackAsItWas) {
  const Frame frame{.kind = Frame::Kind::step,
                    .run = 3,
                    .step = 1ull << 40,
                    .digest = std::string(32, 'a'),
                    .layers = std::string("x\0y", 3)};
  const std::string bytes = encode(frame);
  EXPECT_EQ(decode(std::string_view(bytes).substr(8, bytes.size() - 8 - 32)), frame);
  EXPECT_FALSE(decode(""));
  EXPECT_FALSE(decode(std::string(60, 'x')));
}

TEST(Frame, ARunHasOneForEachStepAndEvaluationAndItsEnd) {
  const auto frames = frames_of(eventful());
  std::string kinds;
  for (const Frame& frame : frames) kinds += static_cast<char>(frame.kind);
  EXPECT_EQ(kinds, "ESSSSSESSSSSESSZ");
}

TEST(Frame, HoldsTheChoicesMarksAndBiasesOfItsStep) {
  const Scenario scenario = eventful();
  const auto frames = frames_of(scenario);
  const auto run = test::simulated(scenario);
  std::size_t steps = 0;
  for (const Frame& frame : frames) {
    if (frame.kind != Frame::Kind::step) continue;
    const StepLayers layers(scenario, frame.layers);
    ASSERT_TRUE(layers.fits());
    EXPECT_EQ(layers.tokens(), 128u);
    Loads loads(2, std::vector<std::int64_t>(6, 0));
    for (std::size_t layer = 0; layer < 2; ++layer) {
      for (std::size_t token = 0; token < layers.tokens(); ++token) {
        for (std::size_t slot = 0; slot < 2; ++slot)
          ++loads[layer][layers.choice(layer, token, slot)];
      }
    }
    EXPECT_EQ(loads, run->steps()[frame.step - 1].loads);
    EXPECT_EQ(frame.digest, run->steps()[frame.step - 1].digest);
    ++steps;
  }
  EXPECT_EQ(steps, 12u);
}

/// Where experts choose, or tokens go to all above a threshold, a token has none to all experts.
TEST(Frame, HoldsEveryChoiceOfTokensWithAnyNumberOfExperts) {
  for (const auto kind : {BalancerKind::expert_choice, BalancerKind::threshold}) {
    for (const Mode mode : {Mode::train, Mode::router_only}) {
      Scenario scenario = eventful();
      scenario.mode = mode;
      scenario.balancer.kind = kind;
      const auto run = test::simulated(scenario);
      std::size_t most = 0;
      for (const Frame& frame : frames_of(scenario)) {
        if (frame.kind != Frame::Kind::step) continue;
        const StepLayers layers(scenario, frame.layers);
        ASSERT_TRUE(layers.fits());
        Loads loads(2, std::vector<std::int64_t>(6, 0));
        for (std::size_t layer = 0; layer < 2; ++layer) {
          most = std::max(most, layers.slots(layer));
          for (std::size_t token = 0; token < layers.tokens(); ++token) {
            for (std::size_t slot = 0; slot < layers.slots(layer); ++slot) {
              const std::size_t expert = layers.choice(layer, token, slot);
              if (expert != layers.experts()) ++loads[layer].at(expert);
            }
          }
        }
        EXPECT_EQ(loads, run->steps()[frame.step - 1].loads);
      }
      EXPECT_GT(most, scenario.model.moe.router.top_k);
    }
  }
}

TEST(Frame, RestartsAndThreadsChangeNone) {
  Scenario scenario = eventful();
  const auto frames = frames_of(scenario);
  EXPECT_EQ(frames_of(scenario, 3), frames);
  scenario.training.restart_after = {6, 11};
  EXPECT_EQ(frames_of(scenario), frames);
}

TEST(StepLayers, ChoicesTakeAsManyBytesAsTheExpertsNeed) {
  EXPECT_EQ(StepLayers::choice_bytes(1), 1u);
  EXPECT_EQ(StepLayers::choice_bytes(255), 1u);
  EXPECT_EQ(StepLayers::choice_bytes(256), 2u) << "one more number says that there is none";
  EXPECT_EQ(StepLayers::choice_bytes(65535), 2u);
  EXPECT_EQ(StepLayers::choice_bytes(65536), 4u);
}

TEST(StepLayers, AWeightThatIsOneUnitOffHasAnotherMark) {
  for (float weight = 1e-6f; weight < 4.0f; weight = weight * 1.0001f) {
    EXPECT_NE(StepLayers::mark(weight), StepLayers::mark(std::nextafter(weight, 8.0f))) << weight;
  }
}

/// Bytes of a layer before its choices: digest, slots, and the biases of 6 experts.
constexpr std::size_t head = 32 + 4 + 6 * 4;

/// The frame of a step of `scenario`, with the bytes of one value changed.
struct Changed {
  Scenario scenario = eventful();
  Frame before, after;

  explicit Changed(std::size_t step) {
    for (Frame& frame : frames_of(scenario)) {
      if (frame.kind == Frame::Kind::step && frame.step == step) before = std::move(frame);
    }
    after = before;
  }
  std::size_t layer_bytes() const { return before.layers.size() / scenario.model.layers; }
  std::optional<Divergence> found() const { return divergence(before, after, scenario); }
};

TEST(Divergence, EqualFramesHaveNone) {
  EXPECT_FALSE(Changed(3).found());
}

TEST(Divergence, NamesTheTokenAndBothExpertsOfAnotherChoice) {
  Changed changed(3);
  const std::size_t token = 77, slot = 1;
  const std::size_t choices = changed.layer_bytes() + head;  // of layer 1
  char& choice = changed.after.layers[choices + token * 2 + slot];
  const auto was = static_cast<std::size_t>(choice);
  choice = static_cast<char>((was + 1) % 6);
  changed.after.layers[choices + (token + 1) * 2] = 0;  // later differences do not matter
  const auto found = changed.found();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->what, Divergence::What::choice);
  EXPECT_EQ(found->step, 3u);
  EXPECT_EQ(found->layer, 1u);
  EXPECT_EQ(found->token, token);
  EXPECT_EQ(found->expert, (was + 1) % 6);
  EXPECT_EQ(found->recorded_expert, was);
  EXPECT_EQ(in_words(*found, changed.scenario),
            "step 3, layer 1, token 77 (rank 1, micro-batch 0, sequence 1, position 5): goes to "
            "expert " +
                std::to_string((was + 1) % 6) + ", and in the recording to expert " +
                std::to_string(was));
}

TEST(Divergence, NamesAChoiceBeyondTheFirstTopKAndOneThatIsNotThere) {
  Scenario scenario = eventful();
  scenario.balancer.kind = BalancerKind::expert_choice;
  const auto frames = frames_of(scenario);
  const Frame& recorded = frames[1];
  const StepLayers layers(scenario, recorded.layers);
  const std::size_t slots = layers.slots(0);
  std::size_t token = 0;
  while (layers.choice(0, token, 2) == layers.experts()) ++token;
  Frame replayed = recorded;
  char& choice = replayed.layers[head + token * slots + 2];
  const auto was = static_cast<std::size_t>(choice);
  choice = 6;
  auto found = divergence(recorded, replayed, scenario);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->what, Divergence::What::choice);
  EXPECT_EQ(found->token, token);
  EXPECT_EQ(found->expert, std::nullopt);
  EXPECT_EQ(found->recorded_expert, was);
  EXPECT_NE(in_words(*found, scenario).find("goes to no further expert, and in the recording to "),
            std::string::npos);
  found = divergence(replayed, recorded, scenario);
  EXPECT_EQ(found->expert, was);
  EXPECT_EQ(found->recorded_expert, std::nullopt);
}

TEST(Divergence, StepsOfOtherLengthsDifferAsAWhole) {
  Changed changed(3);
  changed.after.layers.pop_back();
  EXPECT_EQ(changed.found()->what, Divergence::What::step);
  changed.after.layers[32] = 99;  // more slots than experts
  EXPECT_EQ(changed.found()->what, Divergence::What::step);
}

TEST(Divergence, NamesTheExpertOfAnotherWeight) {
  Changed changed(3);
  const std::size_t token = 100, slot = 1;
  const std::size_t marks = head + 128 * 2;
  changed.after.layers[marks + (token * 2 + slot) * 2] ^= 1;
  const auto found = changed.found();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->what, Divergence::What::weight);
  EXPECT_EQ(found->layer, 0u);
  EXPECT_EQ(found->token, token);
  EXPECT_EQ(found->expert,
            StepLayers(changed.scenario, changed.before.layers).choice(0, token, slot));
}

TEST(Divergence, NamesTheExpertOfAnotherBiasUnlessATokenDiffersToo) {
  Changed changed(3);
  changed.after.layers[head - 6 * 4 + 4 * 4] ^= 1;  // layer 0, expert 4
  auto found = changed.found();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->what, Divergence::What::bias);
  EXPECT_EQ(found->layer, 0u);
  EXPECT_EQ(found->expert, 4u);
  EXPECT_FALSE(found->token);
  const std::size_t choices = changed.layer_bytes() + head;
  changed.after.layers[choices] ^= 1;  // layer 1, token 0: came before the update
  found = changed.found();
  EXPECT_EQ(found->what, Divergence::What::choice);
  EXPECT_EQ(found->layer, 1u);
}

TEST(Divergence, TellsWhatHasNoToken) {
  Changed changed(3);
  changed.after.digest[0] ^= 1;
  EXPECT_EQ(changed.found()->what, Divergence::What::step);
  changed = Changed(3);
  changed.after.layers[0] ^= 1;
  EXPECT_EQ(changed.found()->what, Divergence::What::layer);
  changed = Changed(3);
  changed.after.step = 4;
  EXPECT_EQ(changed.found()->what, Divergence::What::order);
  changed.after = changed.before = {.kind = Frame::Kind::end, .digest = "a", .layers = ""};
  changed.after.digest = "b";
  EXPECT_EQ(changed.found()->what, Divergence::What::end);
}

TEST(Fingerprint, IsTheOneOfThisVersion) {
  // A change of it is a change of the numerics: recordings of before cannot be replayed.
  EXPECT_EQ(numerics_fingerprint().size(), 32u);
  EXPECT_EQ(numerics_fingerprint(), numerics_fingerprint());
}

}  // namespace
}  // namespace ballast::sim
