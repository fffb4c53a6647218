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

double mean(std::span<const double> biases) {
  return arithmetic::sum(biases) / static_cast<double>(biases.size());
}

/// biases - shift, rounded to fp32; nothing when one of them is too large.
std::optional<std::vector<float>> shifted_biases(std::span<const double> biases, double shift) {
  std::vector<float> shifted;
  for (const double b : biases) {
    if (!(std::abs(b - shift) <= bias_max)) return std::nullopt;
    shifted.push_back(static_cast<float>(b - shift));
  }
  return shifted;
}

}  // namespace

std::optional<std::vector<float>> centred_biases(std::span<const double> estimate) {
  return shifted_biases(estimate, mean(estimate));
}

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
  waiting_.clear();
}

ScoreTile QuantileBalancer::required(const RoutedBatch& batch,
                                     std::span<const float> zeros) const {
  if (!settings_.per_expert) return required_tile(batch, biases_.size(), top_k_);
  RoutedBatch without_cutoffs = batch;
  without_cutoffs.cutoffs = zeros;
  return required_tile(without_cutoffs, biases_.size(), batch.indices.cols());
}

void QuantileBalancer::observe(const RoutedBatch& batch) {
  const std::vector<float> zeros(settings_.per_expert ? batch.scores.rows() : 0);
  const ScoreTile tokens = required(batch, zeros);
  if (tokens.observed_tokens() == 0) return;
  if (settings_.estimator == QuantileEstimatorKind::sequence_mean) {
    observe_sequences(tokens, batch.sequence_length == 0 ? tokens.tokens : batch.sequence_length);
  } else {
    estimator_->observe({tokens, biases_, batch.rank});
  }
  if (settings_.update == UpdateCadence::forward) update();
}

void QuantileBalancer::observe_sequences(const ScoreTile& tokens, std::size_t length) {
  require(tokens.tokens % length == 0, "by sequences needs whole ones: " +
                                           std::to_string(tokens.tokens) + " rows are none of " +
                                           std::to_string(length));
  for (std::size_t first = 0; first < tokens.tokens; first += length) {
    const ScoreTile sequence = tokens.part(first, length);
    if (sequence.observed_tokens() > 0) estimator_->observe({sequence, biases_});
  }
}

void QuantileBalancer::end_step(bool applied) {
  if (applied) {
    update();
  } else if (settings_.on_skipped_step == SkippedStep::discard) {
    estimator_->clear();
  }
}

void QuantileBalancer::update() {
  if (auto estimate = next_estimate()) store(blend(*std::move(estimate)));
}

std::optional<std::vector<double>> QuantileBalancer::next_estimate() {
  auto estimate = estimator_->estimate(biases_);
  if (!estimate) return std::nullopt;
  estimator_->clear();
  waiting_.push_back(*std::move(estimate));
  if (waiting_.size() <= settings_.stale_updates) return std::nullopt;
  auto oldest = std::move(waiting_.front());
  waiting_.pop_front();
  return oldest;
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

void QuantileBalancer::store(std::span<const double> biases) {
  const auto moved = shifted_biases(biases, settings_.per_expert ? 0.0 : mean(biases));
  if (moved) std::ranges::copy(*moved, biases_.begin());
}

void QuantileBalancer::save(StateDict& state, const std::string& prefix) const {
  state.put(prefix + "biases", biases_);
  estimator_->save(state, prefix);
  if (settings_.stale_updates == 0) return;
  std::vector<double> waiting;
  for (const auto& estimate : waiting_) waiting.insert(waiting.end(), estimate.begin(), estimate.end());
  state.put(prefix + "waiting", waiting);
}

std::deque<std::vector<double>> QuantileBalancer::load_waiting(const StateDict& state,
                                                               const std::string& name) const {
  std::deque<std::vector<double>> waiting;
  if (settings_.stale_updates == 0) return waiting;
  const std::span<const double> values = state.get<double>(name);
  const std::size_t experts = biases_.size();
  require(values.size() % experts == 0 && values.size() <= settings_.stale_updates * experts &&
              std::ranges::all_of(values, [](double v) { return std::isfinite(v); }),
          "cannot have the estimates of the state entry \"" + name + "\"");
  for (std::size_t i = 0; i < values.size(); i += experts) {
    const auto estimate = values.subspan(i, experts);
    waiting.emplace_back(estimate.begin(), estimate.end());
  }
  return waiting;
}

void QuantileBalancer::load(const StateDict& state, const std::string& prefix) {
  const auto& biases = state.get<float>(prefix + "biases", biases_.size());
  auto estimator = make_quantile_estimator(biases_.size(), top_k_, settings_);
  estimator->load(state, prefix, biases);
  require(
      settings_.update == UpdateCadence::step || estimator->tokens() == 0,
      "at every forward has no pending observations, but the state under \"" + prefix + "\" has");
  auto waiting = load_waiting(state, prefix + "waiting");
  std::copy(biases.begin(), biases.end(), biases_.begin());
  estimator_ = std::move(estimator);
  waiting_ = std::move(waiting);
}

}  // namespace ballast
