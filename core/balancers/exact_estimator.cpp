#include "core/balancers/exact_estimator.h"

#include "core/balancers/order_statistics.h"
#include "core/balancers/required_biases.h"

namespace ballast {

void ExactEstimator::observe(const ObservedForward& forward) {
  append_required_biases(forward.tokens, required_);
}

std::optional<std::vector<double>> ExactEstimator::estimate(std::span<const float>) const {
  const std::size_t tokens = required_.size() / experts_;
  if (tokens == 0) return std::nullopt;
  const std::size_t floor_q = tokens * top_k_ / experts_;
  const auto estimate = column_order_statistics({required_.data(), tokens, experts_}, floor_q);
  return std::vector<double>(estimate.begin(), estimate.end());
}

std::int64_t ExactEstimator::tokens() const {
  return static_cast<std::int64_t>(required_.size() / experts_);
}

void ExactEstimator::save(StateDict& state, const std::string& prefix) const {
  state.put(prefix + "exact.required", required_);
}

void ExactEstimator::load(const StateDict& state, const std::string& prefix,
                          std::span<const float>) {
  const std::string name = prefix + "exact.required";
  const auto& required = state.get<float>(name);
  check_required_biases(required, experts_, name);
  required_ = required;
}

}  // namespace ballast
