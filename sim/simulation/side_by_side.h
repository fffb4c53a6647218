#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/executor.h"
#include "sim/scenario/scenario.h"
#include "sim/simulation/simulation.h"
#include "sim/threads/thread_pool.h"
#include "sim/tokens/token_source.h"

namespace ballast::sim {

/// Runs that go on together step by step, on the same tokens where their token settings are the
/// same. No result depends on the number of threads.
class SideBySide {
 public:
  /// `observers`: one a run, or none at all; they outlive the runs.
  SideBySide(std::span<const Scenario> scenarios, std::size_t threads,
             std::span<RunObserver* const> observers = {});

  /// The runs, in the order of the scenarios.
  std::vector<const Simulation*> runs() const;
  /// Steps of the longest run.
  std::size_t steps() const;
  /// Brings every run to this step (or to its end, if that comes first).
  void advance_to(std::size_t step);

 private:
  ThreadPool pool_;
  const Executor* outer_;
  std::vector<std::unique_ptr<Simulation>> runs_;
};

}  // namespace ballast::sim
