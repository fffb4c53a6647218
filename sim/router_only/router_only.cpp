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

void RouterOnly::forward(std::size_t layer, std::span<const MicroBatch> batches, Loads& loads) {
  const std::size_t experts = scenario_.model.moe.router.routed_experts;
  Routing<float> routing;
  for (const MicroBatch& batch : batches) {
    const std::size_t tokens = batch.tokens.inputs.size();
    if (routing.scores.rows() != tokens) routing.scores = Matrix<float>(tokens, experts);
    scores_.draw(layer, batch.rank, batch.rows, routing.scores);
    layers_[layer]->forward(routing, batch.tokens, batch.rank, loads[layer]);
    if (observer_ != nullptr) {
      observer_->routed(layer, routing.selection.indices, routing.weights);
    }
  }
}

std::vector<RouterOnly::MicroBatch> RouterOnly::micro_batches(std::size_t step,
                                                              const ScoreSettings& settings) const {
  const TrainingSettings& training = scenario_.training;
  std::vector<MicroBatch> batches;
  for (std::size_t rank = 0; rank < training.ranks; ++rank) {
    for (std::size_t micro_batch = 0; micro_batch < training.micro_batches; ++micro_batch) {
      const SequenceKey first = first_sequence(training, step, rank, micro_batch);
      TokenBatch tokens = make_batch(source_, first, training.sequences);
      TokenRows rows = token_rows(settings, tokens, first, scenario_.seed);
      batches.push_back({rank, std::move(tokens), std::move(rows)});
    }
  }
  return batches;
}

StepOutcome RouterOnly::run_step(std::size_t step) {
  const auto& overflows = scenario_.training.overflow_steps;
  const ScoreSettings settings = settings_at(scenario_, step).scores;
  scores_.prepare(settings, step - 1, executor_);
  StepOutcome outcome{.applied = std::ranges::find(overflows, step) == overflows.end(),
                      .loss = std::numeric_limits<double>::quiet_NaN(),
                      .loads = empty_loads(scenario_)};
  const auto batches = micro_batches(step, settings);
  executor_.for_each(layers_.size(), [&](std::size_t layer) {
    forward(layer, batches, outcome.loads);
    layers_[layer]->balancer().end_step(outcome.applied);
  });
  DistinctCount distinct;
  for (const MicroBatch& batch : batches) {
    distinct.add(batch.rows.keys, batch.tokens.valid);
    outcome.tokens += valid_tokens(batch.tokens);
  }
  outcome.distinct_inputs = distinct.count();
  return outcome;
}

Evaluated RouterOnly::evaluate(std::size_t step) {
  const ScoreSettings settings = settings_at(scenario_, std::max<std::size_t>(step, 1)).scores;
  scores_.prepare(settings, step, executor_);
  const SequenceKey first{.split = Split::evaluation};
  TokenBatch tokens = make_batch(source_, first, scenario_.training.evaluate_sequences);
  TokenRows rows = token_rows(settings, tokens, first, scenario_.seed);
  const MicroBatch batch{0, std::move(tokens), std::move(rows)};
  Evaluated evaluated{.output = {},
                      .loss = std::numeric_limits<double>::quiet_NaN(),
                      .loads = empty_loads(scenario_)};
  const bool leaks = scenario_.fault == BalancerFault::evaluation_leak;
  RoutingObserver* const observer = std::exchange(observer_, nullptr);
  tree_.train(leaks);
  executor_.for_each(layers_.size(), [&](std::size_t layer) {
    forward(layer, {&batch, 1}, evaluated.loads);
  });
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
