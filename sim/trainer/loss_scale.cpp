#include "sim/trainer/loss_scale.h"

#include <algorithm>
#include <cstdint>

namespace ballast::sim {

LossScale::LossScale(const LossScaleSettings& settings) : settings_(settings), value_(settings.initial) {}

void LossScale::end_step(bool applied) {
  if (!applied) {
    value_ = std::max(value_ / 2.0, 1.0);
    applied_in_a_row_ = 0;
  } else if (++applied_in_a_row_ >= settings_.growth_interval) {
    value_ = std::min(value_ * 2.0, settings_.initial);
    applied_in_a_row_ = 0;
  }
}

void LossScale::save(StateDict& state, const std::string& prefix) const {
  state.put_scalar(prefix + "value", value_);
  state.put_scalar(prefix + "applied_in_a_row", static_cast<std::int64_t>(applied_in_a_row_));
}

void LossScale::load(const StateDict& state, const std::string& prefix) {
  const auto value = state.get_scalar<double>(prefix + "value");
  applied_in_a_row_ = static_cast<std::size_t>(state.get_scalar<std::int64_t>(prefix + "applied_in_a_row"));
  value_ = value;
}

}  // namespace ballast::sim
