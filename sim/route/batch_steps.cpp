#include "sim/route/batch_steps.h"

#include <algorithm>

namespace ballast::sim {

BatchSteps iterate(const RouterSettings& settings, const Batch& batch, std::size_t steps,
                   Balancer& balancer, RoutingSink* sink, const Executor& executor) {
  BatchSteps result;
  std::vector<float> before;
  for (std::size_t step = 1; step <= steps; ++step) {
    const auto in_force = balancer.biases();
    before.assign(in_force.begin(), in_force.end());
    result.steps.push_back(
        route_batch(settings, before, batch, &balancer, step == steps ? sink : nullptr, executor));
    StageClock clock;
    balancer.end_step(true);
    clock.lap(result.steps.back().times.balance);
    result.times += result.steps.back().times;
  }
  const auto last = balancer.biases();
  result.biases.assign(last.begin(), last.end());
  const bool moved = !std::equal(last.begin(), last.end(), before.begin());
  result.after = moved ? route_batch(settings, result.biases, batch, nullptr, nullptr, executor)
                       : result.steps.back();
  return result;
}

}  // namespace ballast::sim
