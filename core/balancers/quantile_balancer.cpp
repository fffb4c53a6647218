#include "core/balancers/quantile_balancer.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/arithmetic/reductions.h"
#include "core/balancers/bias_count.h"
#include "core/balancers/required_biases.h"

namespace ballast {

namespace {

constexpr std::size_t bins_max = std::size_t{1} << 24;  ///< every bin number is exact in fp32
constexpr double bias_max = 1e30;  ///< sums and differences of biases stay finite

void require(bool holds, const std::string& message) {
  if (!holds) throw std::invalid_argument("quantile balancing " + message);
}

void check(std::size_t experts, std::size_t top_k, const QuantileSettings& settings) {
  require(top_k >= 1, "needs top_k >= 1, not 0");
  require(top_k < experts, "needs top_k < routed_experts, not " + std::to_string(top_k) + " of " +
                               std::to_string(experts) +
                               ": the cutoff is the score of the first expert that is not chosen");
  require(settings.bins >= 2 && settings.bins <= bins_max,
          "needs bins from 2 to 16777216, not " + std::to_string(settings.bins));
  require(settings.ema >= 0.0 && settings.ema < 1.0,
          "needs 0 <= ema < 1, not " + std::to_string(settings.ema));
  require(settings.gain > 0.0 && std::isfinite(settings.gain),
          "needs a finite gain > 0, not " + std::to_string(settings.gain));
  require(settings.ema == 0.0 || settings.gain == 1.0,
          "takes ema or gain, not both: an ema of e is a gain of 1 - e");
}

QuantileSettings checked(std::size_t experts, std::size_t top_k, const QuantileSettings& settings) {
  check(experts, top_k, settings);
  return settings;
}

}  // namespace

QuantileBalancer::QuantileBalancer(std::size_t experts, std::size_t top_k,
                                   const QuantileSettings& settings)
    : top_k_(top_k),
      settings_(checked(experts, top_k, settings)),
      biases_(experts),
      estimator_(make_quantile_estimator(experts, top_k, settings)) {}

void QuantileBalancer::set_biases(std::span<const float> biases) {
  check_bias_count(biases.size(), biases_.size());
  for (std::size_t j = 0; j < biases_.size(); ++j) biases_[j] = biases[j];
  estimator_->clear();
}

void QuantileBalancer::observe(const RoutedBatch& batch) {
  const Matrix<float> required = required_biases(batch, biases_.size(), top_k_);
  if (required.rows() == 0) return;
  estimator_->observe({required.view(), biases_, batch.rank});
  if (settings_.update == UpdateCadence::forward) update();
}

void QuantileBalancer::end_step(bool applied) {
  if (applied) {
    update();
  } else if (settings_.on_skipped_step == SkippedStep::discard) {
    estimator_->clear();
  }
}

void QuantileBalancer::update() {
  const auto estimate = estimator_->estimate(biases_);
  if (!estimate) return;
  estimator_->clear();
  store_centred(blend(*estimate));
}

std::vector<double> QuantileBalancer::blend(std::vector<double> estimate) const {
  if (settings_.ema == 0.0 && settings_.gain == 1.0) return estimate;
  for (std::size_t j = 0; j < estimate.size(); ++j) {
    if (!std::isfinite(biases_[j])) continue;
    const auto old = static_cast<double>(biases_[j]);
    estimate[j] = settings_.ema > 0.0 ? settings_.ema * old + (1.0 - settings_.ema) * estimate[j]
                                      : old + settings_.gain * (estimate[j] - old);
  }
  return estimate;
}

void QuantileBalancer::store_centred(std::span<const double> biases) {
  const double mean = arithmetic::sum(biases) / static_cast<double>(biases.size());
  const bool representable = std::all_of(biases.begin(), biases.end(),
                                         [&](double b) { return std::abs(b - mean) <= bias_max; });
  if (!representable) return;
  std::transform(biases.begin(), biases.end(), biases_.begin(),
                 [&](double b) { return static_cast<float>(b - mean); });
}

void QuantileBalancer::save(StateDict& state, const std::string& prefix) const {
  state.put(prefix + "biases", biases_);
  estimator_->save(state, prefix);
}

void QuantileBalancer::load(const StateDict& state, const std::string& prefix) {
  const auto& biases = state.get<float>(prefix + "biases", biases_.size());
  auto estimator = make_quantile_estimator(biases_.size(), top_k_, settings_);
  estimator->load(state, prefix, biases);
  require(
      settings_.update == UpdateCadence::step || estimator->tokens() == 0,
      "at every forward has no pending observations, but the state under \"" + prefix + "\" has");
  std::copy(biases.begin(), biases.end(), biases_.begin());
  estimator_ = std::move(estimator);
}

}  // namespace ballast
