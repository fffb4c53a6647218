#pragma once

#include "core/balancers/balancer.h"

namespace ballast {

/// No balancing: the biases stay what set_biases or load made them, zeros at first. Observations,
/// whatever they hold, and steps do nothing.
class NoBalancer final : public Balancer {
 public:
  explicit NoBalancer(std::size_t experts) : biases_(experts) {}

  std::span<const float> biases() const override { return biases_; }
  void set_biases(std::span<const float> biases) override;
  void observe(const RoutedBatch&) override {}
  void end_step(bool) override {}
  void save(StateDict& state, const std::string& prefix) const override;
  void load(const StateDict& state, const std::string& prefix) override;

 private:
  std::vector<float> biases_;
};

}  // namespace ballast
