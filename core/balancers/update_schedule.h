#pragma once

namespace ballast {

/// When biases move.
enum class UpdateCadence {
  step,     ///< at the optimizer step, from all micro-batches and ranks
  forward,  ///< at each training forward, from that forward alone
};

/// What a step skipped on overflow does with the observations of its forwards.
enum class SkippedStep {
  discard,  ///< they are dropped
  keep,     ///< they stay and are pooled with those of the next step
};

}  // namespace ballast
