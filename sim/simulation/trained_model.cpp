#include "sim/simulation/trained_model.h"

#include <algorithm>
#include <vector>

#include "sim/scenario/schedule.h"
#include "sim/scores/token_rows.h"

namespace ballast::sim {
namespace {

bool contains(const std::vector<std::size_t>& steps, std::size_t step) {
  return std::ranges::find(steps, step) != steps.end();
}

std::vector<std::uint64_t> ids_of(const TokenBatch& batch) {
  return {batch.inputs.begin(), batch.inputs.end()};
}

}  // namespace

TrainedModel::TrainedModel(const Scenario& scenario, const TokenSource& source,
                           const Executor& executor)
    : scenario_(scenario), source_(source), trainer_(scenario, source.vocabulary(), executor) {}

StepOutcome TrainedModel::run_step(std::size_t step) {
  const TrainingSettings& training = scenario_.training;
  DistinctCount distinct;
  for (std::size_t rank = 0; rank < training.ranks; ++rank) {
    for (std::size_t micro_batch = 0; micro_batch < training.micro_batches; ++micro_batch) {
      const auto batch = make_batch(source_, first_sequence(training, step, rank, micro_batch),
                                    training.sequences);
      distinct.add(ids_of(batch), batch.valid);
      trainer_.forward_backward(batch, rank);
    }
  }
  if (contains(training.overflow_steps, step)) trainer_.inject_overflow();
  if (!scenario_.schedule.empty()) {
    trainer_.set_learning_rate(settings_at(scenario_, step).training.optimizer.learning_rate);
  }
  StepOutcome outcome = trainer_.optim_step();
  outcome.distinct_inputs = distinct.count();
  return outcome;
}

Evaluated TrainedModel::evaluate(std::size_t) {
  return trainer_.evaluate(
      make_batch(source_, {.split = Split::evaluation}, scenario_.training.evaluate_sequences));
}

}  // namespace ballast::sim
