#include "sim/route/batch_steps.h"

namespace ballast::sim {

BatchSteps iterate(const RouterSettings& settings, const Batch& batch, std::size_t steps,
                   BatchBalancer& balancer, RoutingSink* sink, const Executor& executor) {
  BatchSteps result;
  std::vector<float> before;
  for (std::size_t step = 1; step <= steps; ++step) {
    before.assign(balancer.biases().begin(), balancer.biases().end());
    result.steps.push_back(balancer.step(batch, step == steps ? sink : nullptr, executor));
    result.times += result.steps.back().times;
  }
  result.biases.assign(balancer.biases().begin(), balancer.biases().end());
  result.after = result.biases == before
                     ? result.steps.back()
                     : route_batch(settings, result.biases, batch, nullptr, nullptr, executor);
  return result;
}

}  // namespace ballast::sim
