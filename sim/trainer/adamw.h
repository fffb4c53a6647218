#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/executor.h"
#include "core/model/module.h"
#include "core/state.h"
#include "sim/scenario/scenario.h"

namespace ballast::sim {

/// AdamW (Loshchilov and Hutter, arXiv:1711.05101, Algorithm 2): with g the averaged gradient,
///     m <- beta1 m + (1 - beta1) g,   v <- beta2 v + (1 - beta2) g^2,
///     p <- p - lr (m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay p).
/// Values, gradients and moments are fp32; beta^t is kept as a running product in double.
class AdamW {
 public:
  using Parameters = std::vector<std::pair<std::string, Parameter<float>*>>;

  AdamW(Parameters parameters, const OptimizerSettings& settings);

  /// One update from the gradients divided by `divisor`. Gradients are left as they are. Linear in
  /// values; pieces of parameters go to the executor.
  void step(double divisor, const Executor& executor);
  /// Of the gradient of each parameter, in the order of the parameters, the sum of the squares: finite just when all of
  /// its values are.
  std::vector<double> squared_gradients(const Executor& executor) const;
  void clear_gradients();
  const Parameters& parameters() const { return parameters_; }
  void set_learning_rate(double rate) { settings_.learning_rate = rate; }

  void save(StateDict& state, const std::string& prefix) const;
  /// Checks all entries before it changes any.
  void load(const StateDict& state, const std::string& prefix);

 private:
  struct Moments {
    std::vector<float> first, second;
  };

  Parameters parameters_;
  OptimizerSettings settings_;
  std::vector<std::size_t> pieces_;  ///< where groups of parameters begin, and the end of the last
  std::vector<std::vector<std::size_t>> alike_;  ///< parameters of one size, some at once
  std::vector<Moments> moments_;
  double beta1_power_ = 1.0;
  double beta2_power_ = 1.0;
};

}  // namespace ballast::sim
