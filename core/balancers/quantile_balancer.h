#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/balancers/balancer.h"
#include "core/balancers/quantile_estimator.h"
#include "core/balancers/quantile_settings.h"

namespace ballast {

/// The biases that an estimate bhat `[experts]` sets: b = bhat - mean(bhat), in double and in a fixed order, rounded to
/// fp32 once. Nothing when one of them would leave [-1e30, 1e30].
std::optional<std::vector<float>> centred_biases(std::span<const double> estimate);

/// Quantile balancing (Kimi K3 report, Eq. 13-14): sets, not increments, each bias so that q = m k
/// / E of the observed tokens would have selected the expert under their cutoffs,
///     bhat = the estimate of the settings' QuantileEstimator,
///     bhat <- ema b + (1 - ema) bhat,  or  b + gain (bhat - b),
///     b    <- bhat - mean(bhat),       in double and in a fixed order, rounded to fp32
///     once.
///
/// With `per_expert` the cutoffs are 0, whatever the batch says, and nothing is centred:
///     b_j = -[(q + 1)-th largest of s_:j]  with the exact estimator,
/// for routers that activate every expert with s + b > 0 (AssignmentRule::threshold). This is kexue.fm
/// 11626's dynamic activation, with ema 0.9 there: the threshold of each step comes from other tokens.
///
/// - The biases move at end_step() with UpdateCadence::step, and inside observe() with
///   UpdateCadence::forward, where end_step() then does nothing and a skipped step takes nothing
///   back. They never move anywhere else, so all forwards of a step see the same ones with the
///   cadence `step`.
/// - Without a valid token observed, the biases stay as they are, to the bit.
/// - A bias that is not finite (set_biases may set one) is not blended with: the estimate takes its
/// place.
/// - An update that would leave [-1e30, 1e30] (a gain above 2 can diverge) is refused: the last
/// biases stay.
/// - With stale_updates = n an update uses the estimate made n updates before, and the first n move
///   nothing: the solve is off the critical path (Marin #3972).
/// - set_biases() drops pending observations and estimates: they were made under other biases.
///
/// Not for concurrent calls. Costs of observe() and end_step(): see the estimators.
class QuantileBalancer final : public Balancer {
 public:
  /// Zero biases. Throws std::invalid_argument, with one line that says what would be right, for
  /// top_k outside [1, experts), bins outside [2, 2^24], ema outside [0, 1), a gain that is not
  /// finite and positive, or ema together with a gain.
  QuantileBalancer(std::size_t experts, std::size_t top_k, const QuantileSettings& settings);

  std::span<const float> biases() const override { return biases_; }
  void set_biases(std::span<const float> biases) override;

  /// Throws std::invalid_argument, and changes nothing, when a shape is wrong, an r of a valid row
  /// is not finite, or the biases in force give no histogram range. The rows of sequence_mean must
  /// be whole sequences.
  void observe(const RoutedBatch& batch) override;
  void end_step(bool applied) override;

  void save(StateDict& state, const std::string& prefix) const override;
  /// Throws std::out_of_range or std::invalid_argument, and changes nothing, for a state that is
  /// not one of a balancer with these settings.
  void load(const StateDict& state, const std::string& prefix) override;

  /// Valid tokens observed and not yet used or dropped.
  std::int64_t pending_tokens() const { return estimator_->tokens(); }
  /// Observations outside the histogram's range since construction; 0 for scores in [0, 1].
  ClampedCounts clamped() const { return estimator_->clamped(); }

 private:
  ScoreTile required(const RoutedBatch& batch, std::span<const float> zeros) const;
  void observe_sequences(const ScoreTile& tokens, std::size_t length);
  void update();
  std::optional<std::vector<double>> next_estimate();
  std::vector<double> blend(std::vector<double> estimate) const;
  std::deque<std::vector<double>> load_waiting(const StateDict& state,
                                               const std::string& name) const;
  void store(std::span<const double> biases);

  std::size_t top_k_;
  QuantileSettings settings_;
  std::vector<float> biases_;
  std::unique_ptr<QuantileEstimator> estimator_;
  std::deque<std::vector<double>> waiting_;  ///< estimates not yet used, the oldest first
};

}  // namespace ballast
