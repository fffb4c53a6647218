#include "sim/simulation/side_by_side.h"

#include <algorithm>

namespace ballast::sim {

SideBySide::SideBySide(std::span<const Scenario> scenarios, std::size_t threads,
                       std::span<RunObserver* const> observers)
    : pool_(threads) {
  // Whole runs are the better pieces to share out when there are enough of them.
  const bool spread_runs = scenarios.size() >= threads;
  const Executor& inner = spread_runs ? serial_executor() : pool_;
  outer_ = spread_runs ? static_cast<const Executor*>(&pool_) : &serial_executor();
  for (const Scenario& scenario : scenarios) {
    RunObserver* observer = observers.empty() ? nullptr : observers[runs_.size()];
    runs_.push_back(std::make_unique<Simulation>(scenario, inner, observer));
  }
}

std::vector<const Simulation*> SideBySide::runs() const {
  std::vector<const Simulation*> all;
  for (const auto& run : runs_) all.push_back(run.get());
  return all;
}

std::size_t SideBySide::steps() const {
  std::size_t most = 0;
  for (const auto& run : runs_) most = std::max(most, run->scenario().training.steps);
  return most;
}

void SideBySide::advance_to(std::size_t step) {
  outer_->for_each(runs_.size(), [&](std::size_t i) {
    while (!runs_[i]->done() && runs_[i]->completed() < step) runs_[i]->advance();
  });
}

}  // namespace ballast::sim
