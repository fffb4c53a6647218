#include "sim/simulation/workload.h"

#include "sim/router_only/router_only.h"
#include "sim/simulation/trained_model.h"

namespace ballast::sim {

std::unique_ptr<Workload> make_workload(const Scenario& scenario, const TokenSource& source,
                                        const Executor& executor) {
  if (scenario.mode == Mode::router_only) {
    return std::make_unique<RouterOnly>(scenario, source, executor);
  }
  return std::make_unique<TrainedModel>(scenario, source, executor);
}

SequenceKey first_sequence(const TrainingSettings& training, std::size_t step, std::size_t rank,
                           std::size_t micro_batch) {
  return {.split = Split::training,
          .step = step - 1,
          .sequence = (rank * training.micro_batches + micro_batch) * training.sequences,
          .rank = rank};
}

}  // namespace ballast::sim
