#include "sim/router_only/router_only.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "sim/scenario/schedule.h"
#include "sim/trainer/make_balancer.h"

namespace ballast::sim {
namespace {

std::int64_t valid_tokens(const TokenBatch& batch) {
  return std::ranges::count_if(batch.valid, [](std::uint8_t valid) { return valid != 0; });
}

std::string layer_prefix(std::size_t layer) {
  return "balancers." + std::to_string(layer) + ".";
}

Loads empty_loads(const Scenario& scenario) {
  const std::vector<std::int64_t> none(scenario.model.moe.router.routed_experts, 0);
  return Loads(scenario.model.layers, none);
}

}  // namespace

RouterOnly::RouterOnly(const Scenario& scenario, const TokenSource& source,
                       const Executor& executor)
    : scenario_(scenario),
      source_(source),
      executor_(executor),
      scores_(scenario.model.layers, scenario.model.moe.router.routed_experts,
              scenario.model.moe.router.top_k, scenario.training.ranks, scenario.seed) {
  for (std::size_t layer = 0; layer < scenario.model.layers; ++layer) {
    const RouterSettings router = model_settings(scenario).moe.router;
    layers_.push_back(std::make_unique<RoutedLayer>(
        router, with_fault(make_balancer(router, scenario.balancer), scenario.fault)));
    tree_.add_module("layers." + std::to_string(layer) + ".router", *layers_.back());
  }
}

void RouterOnly::forward(const TokenBatch& batch, const TokenRows& rows, std::size_t rank,
                         Loads& loads) {
  const std::size_t experts = scenario_.model.moe.router.routed_experts;
  executor_.for_each(layers_.size(), [&](std::size_t layer) {
    Matrix<float> logits(batch.inputs.size(), experts);
    scores_.draw(layer, rank, rows, logits);
    const auto routing = layers_[layer]->forward(std::move(logits), batch, rank, loads[layer]);
    if (observer_ != nullptr) {
      observer_->routed(layer, routing.selection.indices, routing.weights);
    }
  });
}

StepOutcome RouterOnly::run_step(std::size_t step) {
  const TrainingSettings& training = scenario_.training;
  const ScoreSettings settings = settings_at(scenario_, step).scores;
  scores_.prepare(settings, step - 1, executor_);
  StepOutcome outcome{
      .applied = std::ranges::find(training.overflow_steps, step) == training.overflow_steps.end(),
      .loss = std::numeric_limits<double>::quiet_NaN(),
      .loads = empty_loads(scenario_)};
  DistinctCount distinct;
  for (std::size_t rank = 0; rank < training.ranks; ++rank) {
    for (std::size_t micro_batch = 0; micro_batch < training.micro_batches; ++micro_batch) {
      const SequenceKey first = first_sequence(training, step, rank, micro_batch);
      const TokenBatch batch = make_batch(source_, first, training.sequences);
      const TokenRows rows = token_rows(settings, batch, first, scenario_.seed);
      forward(batch, rows, rank, outcome.loads);
      distinct.add(rows.keys, batch.valid);
      outcome.tokens += valid_tokens(batch);
    }
  }
  for (const auto& layer : layers_) layer->balancer().end_step(outcome.applied);
  outcome.distinct_inputs = distinct.count();
  return outcome;
}

Evaluated RouterOnly::evaluate(std::size_t step) {
  const ScoreSettings settings = settings_at(scenario_, std::max<std::size_t>(step, 1)).scores;
  scores_.prepare(settings, step, executor_);
  const SequenceKey first{.split = Split::evaluation};
  const TokenBatch batch = make_batch(source_, first, scenario_.training.evaluate_sequences);
  const TokenRows rows = token_rows(settings, batch, first, scenario_.seed);
  Evaluated evaluated{.output = {},
                      .loss = std::numeric_limits<double>::quiet_NaN(),
                      .loads = empty_loads(scenario_)};
  const bool leaks = scenario_.fault == BalancerFault::evaluation_leak;
  RoutingObserver* const observer = std::exchange(observer_, nullptr);
  tree_.train(leaks);
  forward(batch, rows, 0, evaluated.loads);
  tree_.train();
  observer_ = observer;
  return evaluated;
}

StateDict RouterOnly::state() const {
  StateDict state;
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    layers_[layer]->balancer().save(state, layer_prefix(layer));
  }
  return state;
}

void RouterOnly::load_state(const StateDict& state) {
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    layers_[layer]->balancer().load(state, layer_prefix(layer));
  }
}

}  // namespace ballast::sim
