#include "sim/trainer/adamw.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
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

  std::vector<std::size_t> by_size(moments_.size());
  std::iota(by_size.begin(), by_size.end(), 0u);
  const auto size_of = [this](std::size_t n) { return moments_[n].first.size(); };
  std::ranges::stable_sort(by_size, {}, size_of);
  constexpr std::size_t at_once = 16;
  for (const std::size_t n : by_size) {
    if (alike_.empty() || alike_.back().size() == at_once ||
        size_of(alike_.back().front()) != size_of(n))
      alike_.emplace_back();
    alike_.back().push_back(n);
  }
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
  std::vector<double> squares(parameters_.size());
  executor.for_each(alike_.size(), [&](std::size_t group) {
    const std::vector<std::size_t>& alike = alike_[group];
    std::vector<const float*> gradients;
    for (const std::size_t n : alike) gradients.push_back(parameters_[n].second->gradient.data());
    std::vector<double> sums(alike.size());
    arithmetic::sums_of_squares(gradients, moments_[alike.front()].first.size(), sums);
    for (std::size_t i = 0; i < alike.size(); ++i) squares[alike[i]] = sums[i];
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
