#pragma once

#include <cstddef>

namespace ballast {

/// How the next bias is estimated from a step's required biases r_ij = alpha_i - s_ij, q = m k / E.
enum class QuantileEstimatorKind {
  exact,      ///< the (floor(q) + 1)-th smallest r of the pooled step
  histogram,  ///< Kimi K3, App. D: pooled integer counts in `bins` bins, rank ceil(q), interpolated
  microbatch_mean,  ///< Megatron: exact per micro-batch, mean over micro-batches, then mean over
                    ///< ranks
  chunk_mean,  ///< Marin: per rank the max(1, floor(q))-th largest margin of its tokens, mean over
               ///< ranks
};

enum class UpdateCadence {
  step,     ///< at the optimizer step, from all micro-batches and ranks
  forward,  ///< at each training forward, from that forward alone
};

/// What a step skipped on overflow does with the observations of its forwards.
enum class SkippedStep {
  discard,  ///< they are dropped
  keep,     ///< they stay and are pooled with those of the next step
};

/// Quantile balancing (algorithms.md 2; Kimi K3 report Eq. 13-14, App. C, D).
struct QuantileSettings {
  QuantileEstimatorKind estimator = QuantileEstimatorKind::histogram;
  std::size_t bins = 1000;  ///< of the histogram; at least 2
  UpdateCadence update = UpdateCadence::step;
  SkippedStep on_skipped_step = SkippedStep::discard;
  double ema = 0.0;   ///< e in [0, 1): bhat <- e b + (1 - e) bhat, before centring; 0 is off
  double gain = 1.0;  ///< g > 0: b <- b + g (bhat - b); 1 is off. Not together with ema.
};

}  // namespace ballast
