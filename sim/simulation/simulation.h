#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/diagnostics/moe_diagnostics.h"
#include "core/executor.h"
#include "sim/collapse/collapse.h"
#include "sim/scenario/scenario.h"
#include "sim/simulation/records.h"
#include "sim/simulation/run_observer.h"
#include "sim/simulation/workload.h"
#include "sim/tokens/token_source.h"

namespace ballast::sim {

/// The life of one run as a scenario describes it, be it a model in training or routers alone:
/// steps, evaluations, log windows, checkpoints, overflows and restarts. It only computes and
/// remembers; who wants to show or write does so between calls of `advance`.
class Simulation {
 public:
  /// The source, the executor and the observer, if there is one, must outlive the simulation.
  Simulation(const Scenario& scenario, const TokenSource& source, const Executor& executor,
             RunObserver* observer = nullptr);
  /// With the token source of the scenario, which the simulation keeps.
  Simulation(const Scenario& scenario, const Executor& executor, RunObserver* observer = nullptr);

  bool done() const { return completed_ == scenario_.training.steps; }
  /// Steps that are complete and not undone by a restart.
  std::size_t completed() const { return completed_; }

  /// Runs the next optimizer step, with the evaluation, log window, checkpoint and restart that
  /// follow it. A step that a restart makes the run repeat must come out as before, to the bit:
  /// std::logic_error otherwise.
  void advance();

  const Scenario& scenario() const { return scenario_; }
  const std::vector<StepRecord>& steps() const { return steps_; }
  const std::vector<EvaluationRecord>& evaluations() const { return evaluations_; }
  const std::vector<WindowRecord>& windows() const { return windows_; }
  const std::vector<Event>& events() const { return events_; }

  /// Whether and how routing collapsed in the steps so far.
  CollapseReport collapse() const;

  /// One digest over all steps, all evaluations and the final state. Equal whether the collector is
  /// on or off, on any number of threads, with restarts or without.
  std::string digest() const;

 private:
  Simulation(const Scenario& scenario, std::unique_ptr<TokenSource> source,
             const Executor& executor, RunObserver* observer);

  void start();
  void run_step(std::size_t step);
  void show_biases();
  void evaluate(std::size_t step);
  void close_window(std::size_t step);
  void save_checkpoint(std::size_t step);
  void restart(std::size_t step);
  void remember(StepRecord record);

  Scenario scenario_;
  std::unique_ptr<TokenSource> own_source_;
  const TokenSource& source_;
  const Executor& executor_;
  RunObserver* observer_;

  std::unique_ptr<Workload> workload_;
  std::unique_ptr<MoEDiagnostics> diagnostics_;
  MoEDiagnostics::Activation active_;

  std::size_t completed_ = 0;
  std::size_t counted_from_ = 1;  ///< first step that the collector's counts hold
  std::size_t checkpoint_step_ = 0;
  std::vector<std::uint8_t> checkpoint_;
  std::set<std::size_t> restarts_to_come_;

  std::vector<StepRecord> steps_;
  std::vector<EvaluationRecord> evaluations_;
  std::vector<WindowRecord> windows_;
  std::vector<Event> events_;
};

}  // namespace ballast::sim
