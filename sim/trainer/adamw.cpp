#include "sim/trainer/adamw.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>

#include "core/arithmetic/reductions.h"
#include "core/kernels/kernels.h"

namespace ballast::sim {

namespace {

/// Of normal numbers whose inverses are normal, too.
bool is_power_of_two(float x) {
  int exponent = 0;
  return std::frexp(x, &exponent) == 0.5f && std::abs(exponent) < 100;
}

}  // namespace

AdamW::AdamW(Parameters parameters, const OptimizerSettings& settings)
    : parameters_(std::move(parameters)), settings_(settings) {
  constexpr std::size_t values_worth_a_piece = 16384;
  std::size_t values = values_worth_a_piece;
  for (const auto& [name, parameter] : parameters_) {
    if (values >= values_worth_a_piece) {
      pieces_.push_back(moments_.size());
      values = 0;
    }
    const std::size_t size = parameter->value.values().size();
    moments_.push_back({std::vector<float>(size), std::vector<float>(size)});
    values += size;
  }
  pieces_.push_back(moments_.size());

  constexpr std::size_t at_once = 16;
  for (std::size_t n = 0; n < moments_.size(); ++n) {
    const bool goes_on = n > 0 && n - alike_.back() < at_once &&
                         moments_[n].first.size() == moments_[n - 1].first.size();
    if (!goes_on) alike_.push_back(n);
  }
  alike_.push_back(moments_.size());
}

void AdamW::step(double divisor, const Executor& executor) {
  beta1_power_ *= settings_.beta1;
  beta2_power_ *= settings_.beta2;
  const auto scale = static_cast<float>(divisor);
  const kernels::AdamWFactors factors{.scale = scale,
                                      .beta1 = static_cast<float>(settings_.beta1),
                                      .beta2 = static_cast<float>(settings_.beta2),
                                      .keep1 = static_cast<float>(1.0 - settings_.beta1),
                                      .keep2 = static_cast<float>(1.0 - settings_.beta2),
                                      .correct1 = static_cast<float>(1.0 / (1.0 - beta1_power_)),
                                      .correct2 = static_cast<float>(1.0 / (1.0 - beta2_power_)),
                                      .rate = static_cast<float>(settings_.learning_rate),
                                      .eps = static_cast<float>(settings_.eps),
                                      .decay = static_cast<float>(settings_.weight_decay),
                                      .exact_inverse = is_power_of_two(scale)};
  executor.for_each(pieces_.size() - 1, [&](std::size_t piece) {
    for (std::size_t n = pieces_[piece]; n < pieces_[piece + 1]; ++n) {
      auto& parameter = *parameters_[n].second;
      kernels::active().adamw(
          factors, {parameter.gradient.data(), parameter.value.data(), moments_[n].first.data(),
                    moments_[n].second.data(), moments_[n].first.size()});
    }
  });
}

std::vector<double> AdamW::squared_gradients(const Executor& executor) const {
  std::vector<const float*> gradients;
  for (const auto& [name, parameter] : parameters_) gradients.push_back(parameter->gradient.data());
  std::vector<double> squares(parameters_.size());
  executor.for_each(alike_.size() - 1, [&](std::size_t piece) {
    const std::size_t first = alike_[piece], count = alike_[piece + 1] - first;
    arithmetic::sums_of_squares(std::span(gradients).subspan(first, count),
                                moments_[first].first.size(),
                                std::span(squares).subspan(first, count));
  });
  return squares;
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
