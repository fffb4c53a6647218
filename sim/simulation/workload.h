#pragma once

#include <cstddef>
#include <memory>

#include "core/balancers/balancer.h"
#include "core/executor.h"
#include "core/model/module.h"
#include "core/state.h"
#include "sim/scenario/scenario.h"
#include "sim/tokens/token_source.h"
#include "sim/trainer/trainer.h"

namespace ballast::sim {

/// What a simulation runs step by step: a model in training, or routers alone that are shown drawn
/// scores.
class Workload {
 public:
  virtual ~Workload() = default;

  /// Whether there is a loss, and gradients that could overflow.
  virtual bool learns() const = 0;
  /// Optimizer step `step` (from 1), over all micro-batches of all ranks.
  virtual StepOutcome run_step(std::size_t step) = 0;
  /// A forward of the evaluation tokens after `step`; no balancer sees it, and no collector.
  virtual Evaluated evaluate(std::size_t step) = 0;

  /// Shows the routing of every later training forward to `observer`, which outlives them; null: to
  /// nobody.
  virtual void observe(RoutingObserver* observer) = 0;

  /// The tree of modules that a collector looks through.
  virtual Module& modules() = 0;
  virtual std::size_t layers() const = 0;
  virtual const Balancer& balancer(std::size_t layer) = 0;

  /// Everything that later steps depend on, between steps.
  virtual StateDict state() const = 0;
  virtual void load_state(const StateDict& state) = 0;
};

/// The workload of a scenario's mode, at its beginning. Source and executor must outlive it.
std::unique_ptr<Workload> make_workload(const Scenario& scenario, const TokenSource& source,
                                        const Executor& executor);

/// The place in the data of the first sequence of a micro-batch of a rank, at a step from 1.
SequenceKey first_sequence(const TrainingSettings& training, std::size_t step, std::size_t rank,
                           std::size_t micro_batch);

}  // namespace ballast::sim
