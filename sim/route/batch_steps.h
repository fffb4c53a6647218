#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sim/route/batch_balancer.h"
#include "sim/route/batch_pass.h"

namespace ballast::sim {

/// What routing a batch again and again came to.
struct BatchSteps {
  std::vector<PassCounts> steps;  ///< of each step, made under the biases before it
  PassCounts after;               ///< of the batch under the last biases
  std::vector<float> biases;      ///< the last ones
  StageTimes times;               ///< of all steps together; without the pass for `after`
};

/// `steps` >= 1 times: routes the batch under the balancer's biases, which then move. `sink` (may
/// be null) gets the routing of the last step, so for one step that under the biases the balancer
/// had at first. Throws what the balancer throws.
BatchSteps iterate(const RouterSettings& settings, const Batch& batch, std::size_t steps,
                   BatchBalancer& balancer, RoutingSink* sink, const Executor& executor);

}  // namespace ballast::sim
