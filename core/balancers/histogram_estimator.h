#pragma once

#include <optional>

#include "core/balancers/histogram_counts.h"
#include "core/balancers/quantile_estimator.h"

namespace ballast {

/// Kimi K3, App. D: pooled integer counts of the required biases, one histogram an expert, over the
/// range that the biases in force give (HistogramRange, histogram_quantile).
///
/// Every valid token adds one count to every expert, so each expert's counts add up to tokens();
/// counts are int64. How the tokens are split over micro-batches and ranks, and their order, change
/// no bit. Needs experts * bins counts while something is pending; observing is linear in tokens *
/// experts, estimating in experts * bins. Observations outside the range (scores that are not in
/// [0, 1]) go into the edge bins and are counted in clamped(). Throws std::logic_error when the
/// biases change while observations are pending: their bins would mean something else.
class HistogramEstimator final : public QuantileEstimator {
 public:
  HistogramEstimator(std::size_t experts, std::size_t top_k, std::size_t bins);

  void observe(const ObservedForward& forward) override;
  std::optional<std::vector<double>> estimate(std::span<const float> biases) const override;
  void clear() override;
  std::int64_t tokens() const override { return pending_ ? pending_->tokens() : 0; }
  ClampedCounts clamped() const override;
  void save(StateDict& state, const std::string& prefix) const override;
  void load(const StateDict& state, const std::string& prefix,
            std::span<const float> biases) override;

  /// The pending counts of one expert, `[bins]`.
  std::vector<std::int64_t> counts(std::size_t expert) const;

 private:
  void check_range(const HistogramRange& range) const;

  std::size_t experts_;
  std::size_t top_k_;
  std::size_t bins_;
  std::optional<HistogramCounts> pending_;
  ClampedCounts clamped_before_;  ///< of what is not pending any more
};

}  // namespace ballast
