#include "sim/trainer/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "sim/tokens/make_source.h"
#include "tests/sim/support/small_scenario.h"

namespace ballast::sim {
namespace {

using test::small_scenario;

class TrainerTest : public testing::Test {
 protected:
  std::unique_ptr<Trainer> make_trainer() {
    return std::make_unique<Trainer>(scenario_, source_->vocabulary(), serial_executor());
  }
  TokenBatch batch(std::uint64_t step, std::size_t sequences = 4) {
    return make_batch(*source_, {.split = Split::training, .step = step, .sequence = 0}, sequences);
  }

  Scenario scenario_ = small_scenario();
  std::unique_ptr<TokenSource> source_ = make_source(scenario_.tokens, scenario_.seed);
};

TEST_F(TrainerTest, ForwardBackwardReportsOneRecordASequenceAndTheMoeMetrics) {
  const auto trainer = make_trainer();
  const auto output = trainer->forward_backward(batch(0), 0);
  ASSERT_EQ(output.loss_fn_outputs.size(), 4u);
  double sum = 0.0;
  for (const auto& record : output.loss_fn_outputs) {
    const auto& logprobs = record.at("logprobs");
    EXPECT_EQ(logprobs.shape, std::vector<std::size_t>{8});
    for (const float p : std::get<std::vector<float>>(logprobs.data)) {
      EXPECT_LT(p, 0.0f);
      sum -= static_cast<double>(p);
    }
  }
  EXPECT_DOUBLE_EQ(output.metrics.at("loss:sum"), sum);
  EXPECT_EQ(output.metrics.at("tokens:sum"), 32.0);
  for (const char* key : metric_key::moe) EXPECT_TRUE(output.metrics.contains(key)) << key;
}

TEST_F(TrainerTest, StepLossIsTheMeanOverAllMicroBatches) {
  const auto trainer = make_trainer();
  const auto a = trainer->forward_backward(batch(0), 0);
  const auto b = trainer->forward_backward(batch(1), 0);
  const auto outcome = trainer->optim_step();
  EXPECT_EQ(outcome.tokens, 64);
  EXPECT_NEAR(outcome.loss, (a.metrics.at("loss:sum") + b.metrics.at("loss:sum")) / 64.0, 1e-12);
}

TEST_F(TrainerTest, EvaluationChangesNoStateAndSeesTheSameModel) {
  const auto trainer = make_trainer();
  const StateDict before = trainer->state();
  const auto evaluated = trainer->evaluate(batch(0));
  EXPECT_EQ(trainer->state(), before);
  const auto output = trainer->forward_backward(batch(0), 0);
  EXPECT_EQ(output.metrics, evaluated.output.metrics);
}

TEST_F(TrainerTest, StateIsSavedBetweenStepsOnly) {
  const auto trainer = make_trainer();
  trainer->forward_backward(batch(0), 0);
  EXPECT_THROW(trainer->state(), std::logic_error);
  trainer->optim_step();
  EXPECT_NO_THROW(trainer->state());
}

TEST_F(TrainerTest, StateRoundTripsAndGoesOnToTheBit) {
  const auto trainer = make_trainer();
  for (std::uint64_t step = 0; step < 3; ++step) {
    trainer->forward_backward(batch(step), 0);
    trainer->optim_step();
  }
  const auto other = make_trainer();
  other->load_state(StateDict::from_bytes(trainer->state().to_bytes()));
  EXPECT_EQ(other->state(), trainer->state());
  for (const auto& t : {trainer.get(), other.get()}) {
    t->forward_backward(batch(3), 0);
    t->optim_step();
  }
  EXPECT_EQ(other->state(), trainer->state());
}

TEST_F(TrainerTest, OverflowLeavesParametersOptimizerAndBiasesAlone) {
  const auto trainer = make_trainer();
  trainer->forward_backward(batch(0), 0);
  trainer->optim_step();
  const StateDict before = trainer->state();
  trainer->forward_backward(batch(1), 0);
  trainer->inject_overflow();
  EXPECT_FALSE(trainer->optim_step().applied);
  const StateDict after = trainer->state();
  for (const auto& [name, values] : before.entries()) {
    if (!name.starts_with("loss_scale.")) {
      EXPECT_TRUE(after.entries().at(name) == values) << name;
    }
  }
  EXPECT_EQ(after.get_scalar<double>("loss_scale.value"), before.get_scalar<double>("loss_scale.value") / 2.0);
}

TEST_F(TrainerTest, BiasesInForceDuringAStepAreThoseOfItsBeginning) {
  const auto trainer = make_trainer();
  const auto biases = [&] {
    const auto b = trainer->model().moe(0).biases();
    return std::vector<float>(b.begin(), b.end());
  };
  const auto before = biases();
  trainer->forward_backward(batch(0), 0);
  trainer->forward_backward(batch(1), 0);
  EXPECT_EQ(biases(), before);
  trainer->optim_step();
  EXPECT_NE(biases(), before);
}

TEST_F(TrainerTest, StepWithoutAnyValidTokenChangesNothing) {
  const auto trainer = make_trainer();
  trainer->forward_backward(batch(0), 0);
  trainer->optim_step();
  const StateDict before = trainer->state();
  TokenBatch padding = batch(1);
  std::ranges::fill(padding.valid, std::uint8_t{0});
  const auto output = trainer->forward_backward(padding, 0);
  EXPECT_FALSE(output.metrics.contains("e_max_violation:mean"));
  const auto outcome = trainer->optim_step();
  EXPECT_TRUE(std::isnan(outcome.loss));
  EXPECT_EQ(outcome.tokens, 0);
  const StateDict after = trainer->state();
  for (const auto& [name, values] : after.entries()) {
    if (!name.starts_with("loss_scale.")) {
      EXPECT_TRUE(values == before.entries().at(name)) << name;
    }
  }
}

TEST_F(TrainerTest, UpdateAtEveryForwardMovesBiasesWithinTheStep) {
  scenario_.balancer.quantile.update = UpdateCadence::forward;
  const auto trainer = make_trainer();
  trainer->forward_backward(batch(0), 0);
  bool moved = false;
  for (const float b : trainer->model().moe(0).biases()) moved |= b != 0.0f;
  EXPECT_TRUE(moved);
}

}  // namespace
}  // namespace ballast::sim
