#include "core/balancers/no_balancer.h"

#include "core/balancers/bias_count.h"

namespace ballast {

void NoBalancer::set_biases(std::span<const float> biases) {
  check_bias_count(biases.size(), biases_.size());
  for (std::size_t j = 0; j < biases_.size(); ++j) biases_[j] = biases[j];
}

void NoBalancer::save(StateDict& state, const std::string& prefix) const {
  state.put(prefix + "biases", biases_);
}

void NoBalancer::load(const StateDict& state, const std::string& prefix) {
  biases_ = state.get<float>(prefix + "biases", biases_.size());
}

}  // namespace ballast
