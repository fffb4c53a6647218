#include "sim/trainer/adamw.h"

#include <algorithm>
#include <cmath>

namespace ballast::sim {

AdamW::AdamW(Parameters parameters, const OptimizerSettings& settings)
    : parameters_(std::move(parameters)), settings_(settings) {
  for (const auto& [name, parameter] : parameters_) {
    const std::size_t size = parameter->value.values().size();
    moments_.push_back({std::vector<float>(size), std::vector<float>(size)});
  }
}

void AdamW::step(double divisor) {
  beta1_power_ *= settings_.beta1;
  beta2_power_ *= settings_.beta2;
  const auto scale = static_cast<float>(divisor);
  const auto beta1 = static_cast<float>(settings_.beta1);
  const auto beta2 = static_cast<float>(settings_.beta2);
  const auto keep1 = static_cast<float>(1.0 - settings_.beta1);
  const auto keep2 = static_cast<float>(1.0 - settings_.beta2);
  const auto correct1 = static_cast<float>(1.0 / (1.0 - beta1_power_));
  const auto correct2 = static_cast<float>(1.0 / (1.0 - beta2_power_));
  const auto rate = static_cast<float>(settings_.learning_rate);
  const auto eps = static_cast<float>(settings_.eps);
  const auto decay = static_cast<float>(settings_.weight_decay);
  for (std::size_t n = 0; n < parameters_.size(); ++n) {
    float* p = parameters_[n].second->value.data();
    const float* gradient = parameters_[n].second->gradient.data();
    float* m = moments_[n].first.data();
    float* v = moments_[n].second.data();
    const std::size_t size = moments_[n].first.size();
    for (std::size_t i = 0; i < size; ++i) {
      const float g = gradient[i] / scale;
      m[i] = beta1 * m[i] + keep1 * g;
      v[i] = beta2 * v[i] + keep2 * (g * g);
      const float direction = (m[i] * correct1) / (std::sqrt(v[i] * correct2) + eps);
      p[i] -= rate * (direction + decay * p[i]);
    }
  }
}

bool AdamW::gradients_are_finite() const {
  return std::ranges::all_of(parameters_, [](const auto& named) {
    bool finite = true;
    for (const float g : named.second->gradient.values()) finite &= std::isfinite(g);
    return finite;
  });
}

void AdamW::clear_gradients() {
  for (const auto& [name, parameter] : parameters_) {
    std::ranges::fill(parameter->gradient.values(), 0.0f);
  }
}

void AdamW::save(StateDict& state, const std::string& prefix) const {
  for (std::size_t n = 0; n < parameters_.size(); ++n) {
    state.put(prefix + "first." + parameters_[n].first, moments_[n].first);
    state.put(prefix + "second." + parameters_[n].first, moments_[n].second);
  }
  state.put(prefix + "beta_powers", std::vector<double>{beta1_power_, beta2_power_});
}

void AdamW::load(const StateDict& state, const std::string& prefix) {
  std::vector<Moments> moments;
  for (std::size_t n = 0; n < parameters_.size(); ++n) {
    const std::size_t size = moments_[n].first.size();
    moments.push_back({state.get<float>(prefix + "first." + parameters_[n].first, size),
                       state.get<float>(prefix + "second." + parameters_[n].first, size)});
  }
  const auto& powers = state.get<double>(prefix + "beta_powers", 2);
  moments_ = std::move(moments);
  beta1_power_ = powers[0];
  beta2_power_ = powers[1];
}

}  // namespace ballast::sim
