#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/balancers/clamped_counts.h"
#include "core/balancers/quantile_settings.h"
#include "core/kernels/score_tile.h"
#include "core/state.h"

namespace ballast {

/// A forward as an estimator sees it. Views are valid during the call only.
struct ObservedForward {
  ScoreTile tokens;               ///< at least one of them observed
  std::span<const float> biases;  ///< b in force, `[experts]`: the biases that made the cutoffs
  std::size_t rank = 0;           ///< data-parallel rank that ran the forward
};

/// Estimates per expert the bias bhat at which q = m k / E of the m observed tokens would select
/// it, with their cutoffs held fixed. It knows nothing of cadence, smoothing and centring. Not for
/// concurrent calls.
class QuantileEstimator {
 public:
  virtual ~QuantileEstimator() = default;

  /// Adds a forward to the pending observations.
  virtual void observe(const ObservedForward& forward) = 0;
  /// bhat, `[experts]`, before centring, from all pending observations, which stay; nothing when
  /// there are none. `biases` are those in force, the same as at every pending observation.
  virtual std::optional<std::vector<double>> estimate(std::span<const float> biases) const = 0;
  /// Drops the pending observations.
  virtual void clear() = 0;
  /// Number of valid tokens pending.
  virtual std::int64_t tokens() const = 0;
  /// Since construction, skipped steps included; part of the state.
  virtual ClampedCounts clamped() const { return {}; }

  /// Saves everything but the settings under names that begin with `prefix`. `load` brings it back
  /// to the bit, where `biases` are those that were in force. It throws std::invalid_argument or
  /// std::out_of_range for a state that no estimator of these settings can be in, and is then worth
  /// nothing.
  virtual void save(StateDict& state, const std::string& prefix) const = 0;
  virtual void load(const StateDict& state, const std::string& prefix,
                    std::span<const float> biases) = 0;
};

/// The estimator that the settings name, without observations. 1 <= top_k < experts. sequence_mean
/// is microbatch_mean that is shown each sequence on its own, all as of one rank.
std::unique_ptr<QuantileEstimator> make_quantile_estimator(std::size_t experts, std::size_t top_k,
                                                           const QuantileSettings& settings);

}  // namespace ballast
