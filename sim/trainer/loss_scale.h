#pragma once

#include <cstddef>
#include <string>

#include "core/state.h"
#include "sim/scenario/scenario.h"

namespace ballast::sim {

/// The dynamic loss scale of mixed-precision training: losses are multiplied by it before the backward pass.
/// A step whose gradients overflow halves it (not below 1); after `growth_interval` applied steps in a row it
/// doubles, up to where it began. Always a power of two, so scaling rounds nothing.
class LossScale {
 public:
  explicit LossScale(const LossScaleSettings& settings);

  double value() const { return value_; }
  void end_step(bool applied);

  void save(StateDict& state, const std::string& prefix) const;
  void load(const StateDict& state, const std::string& prefix);

 private:
  LossScaleSettings settings_;
  double value_;
  std::size_t applied_in_a_row_ = 0;
};

}  // namespace ballast::sim
