#include <span>

#include "core/diagnostics/moe_diagnostics.h"
#include "sim/signature/inputs.h"
#include "sim/signature/stage.h"
#include "sim/signature/suite.h"
#include "sim/simulation/scenario_source.h"
#include "sim/simulation/workload.h"
#include "sim/trainer/trainer.h"

namespace ballast::sim {
namespace {

/// The small model of the suite, and what its first step trains on.
class FirstStep {
 public:
  explicit FirstStep(const Executor& executor)
      : source_(make_source(scenario_)), trainer_(scenario_, source_->vocabulary(), executor) {}

  Trainer& trainer() { return trainer_; }

  /// Forward and backward of all micro-batches of all ranks.
  std::vector<ForwardBackwardOutput> run() {
    std::vector<ForwardBackwardOutput> outputs;
    for (std::size_t rank = 0; rank < scenario_.training.ranks; ++rank) {
      for (std::size_t i = 0; i < scenario_.training.micro_batches; ++i) {
        const auto first = first_sequence(scenario_.training, 1, rank, i);
        outputs.push_back(trainer_.forward_backward(
            make_batch(*source_, first, scenario_.training.sequences), rank));
      }
    }
    return outputs;
  }

 private:
  Scenario scenario_ = suite_training();
  std::unique_ptr<TokenSource> source_;
  Trainer trainer_;
};

void add_initial_parameters(Digest& digest, const Executor& executor) {
  FirstStep step(executor);
  for (const auto& [name, parameter] : step.trainer().model().named_parameters<float>()) {
    digest.add(std::span<const float>(parameter->value.values()));
  }
}

void add_forward(Digest& digest, const Executor& executor) {
  FirstStep step(executor);
  for (const ForwardBackwardOutput& output : step.run()) {
    for (const LossFnOutput& record : output.loss_fn_outputs) {
      for (const auto& [name, tensor] : record)
        digest.add(std::span(std::get<std::vector<float>>(tensor.data)));
    }
    for (const auto& [key, value] : output.metrics) digest.add(value);
  }
}

void add_backward(Digest& digest, const Executor& executor) {
  FirstStep step(executor);
  step.run();
  for (const auto& [name, parameter] : step.trainer().model().named_parameters<float>()) {
    digest.add(std::span<const float>(parameter->gradient.values()));
  }
}

/// Three updates, so that both moments and their corrections count.
void add_update(Digest& digest, const Executor& executor) {
  FirstStep step(executor);
  for (int i = 0; i < 3; ++i) {
    step.run();
    digest.add(step.trainer().optim_step().loss);
  }
  const auto state = step.trainer().state().to_bytes();
  digest.add(std::span<const std::uint8_t>(state));
}

void add_collected(Digest& digest, const Executor& executor) {
  FirstStep step(executor);
  MoEDiagnostics diagnostics(step.trainer().model());
  const auto active = diagnostics.activate();
  step.run();
  step.trainer().optim_step();
  for (const auto& [name, layer] : diagnostics.snapshot().layers) {
    digest.add(std::span<const std::int64_t>(layer.expert_load_counts));
    digest.add(layer.tokens);
    digest.add(layer.max_load_over_mean.value_or(-1.0));
    digest.add(layer.zero_load_experts.value_or(-1));
    for (const auto& bias : layer.biases) digest.add(bias.value_or(0.0f));
  }
}

}  // namespace

std::vector<Stage> training_stages() {
  return {{"training/initial parameters", add_initial_parameters},
          {"training/forward", add_forward},
          {"training/backward", add_backward},
          {"training/update", add_update},
          {"training/collector", add_collected}};
}

}  // namespace ballast::sim
