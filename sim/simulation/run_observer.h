#pragma once

#include <cstddef>
#include <span>

#include "sim/simulation/records.h"
#include "sim/trainer/routing_observer.h"

namespace ballast::sim {

/// Sees what a run does, while it does it, and changes nothing. What a restart makes the run do a
/// second time is not shown again. But for `routed`, the calls of a run come one after the other;
/// different runs may be on different threads.
class RunObserver : public RoutingObserver {
 public:
  /// The biases `[experts]` of a layer after the step: layer by layer, before `stepped`.
  virtual void updated(std::size_t layer, std::span<const float> biases) = 0;
  virtual void stepped(const StepRecord& record) = 0;
  virtual void evaluated(const EvaluationRecord& record) = 0;
};

}  // namespace ballast::sim
