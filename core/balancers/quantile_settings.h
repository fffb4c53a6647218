#pragma once

#include <cstddef>

#include "core/balancers/update_schedule.h"

namespace ballast {

/// How the next bias is estimated from a step's required biases r_ij = alpha_i - s_ij, q = m k / E.
enum class QuantileEstimatorKind {
  exact,      ///< the (floor(q) + 1)-th smallest r of the pooled step
  histogram,  ///< Kimi K3, App. D: pooled integer counts in `bins` bins, rank ceil(q), interpolated
  microbatch_mean,  ///< Megatron: exact per micro-batch, mean over micro-batches, then mean over
                    ///< ranks
  chunk_mean,  ///< Marin: per rank the max(1, floor(q))-th largest margin of its tokens, mean over
               ///< ranks
  sequence_mean,  ///< exact per sequence, mean over the step's sequences
};

/// Quantile balancing (algorithms.md 2; Kimi K3 report Eq. 13-14, App. C, D).
struct QuantileSettings {
  QuantileEstimatorKind estimator = QuantileEstimatorKind::histogram;
  std::size_t bins = 1000;  ///< of the histogram; at least 2
  UpdateCadence update = UpdateCadence::step;
  SkippedStep on_skipped_step = SkippedStep::discard;
  double ema = 0.0;   ///< e in [0, 1): bhat <- e b + (1 - e) bhat, before centring; 0 is off
  double gain = 1.0;  ///< g > 0: b <- b + g (bhat - b); 1 is off. Not together with ema.
  std::size_t stale_updates = 0;  ///< each update uses the estimate made this many updates before
  /// Dynamic activation: no cutoffs and no centring, see QuantileBalancer.
  bool per_expert = false;
};

}  // namespace ballast
