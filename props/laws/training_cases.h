#pragma once

#include <cstddef>
#include <vector>

#include "core/random/stream.h"
#include "props/cases/case.h"

namespace ballast::props {

/// What a generated training run may hold. Every feature is drawn, or left out, once per case.
struct TrainingFeatures {
  std::vector<BalancerSpec> balancers;  ///< one of them
  std::vector<ScoreFunction> scores = {ScoreFunction::sigmoid, ScoreFunction::softmax,
                                       ScoreFunction::logit};  ///< one of them
  bool update_at_forward = false;  ///< some cases open with Update::forward
  bool first_biases = true;        ///< some cases do not begin at zeros
  bool evaluations = false;
  bool recomputes = false;
  bool masks = false;
  bool ranks = false;
  bool skipped_steps = false;
  bool empty_forwards = false;  ///< some forwards without tokens, some steps without forwards
  bool not_finite = false;      ///< some logits are NaN or infinite
  bool long_batches = false;    ///< some steps of 500 to 700 tokens whose loads are all but equal
  std::size_t steps_max = 3;
};

inline constexpr BalancerSpec exact_balancer{.kind = BalancerKind::quantile};
inline constexpr BalancerSpec histogram_balancer{.kind = BalancerKind::quantile,
                                                 .estimator = Estimator::histogram};
inline constexpr BalancerSpec sign_balancer{.kind = BalancerKind::sign, .rate = 0.0078125};

/// Layers, experts (top_k < experts), balancer, biases and logits by family: dyadic grids with
/// exact ties, smooth values, per-expert skew, one hot expert, saturated, and rows that repeat.
/// Micro-batches of a few tokens.
Case training_case(Stream& stream, std::size_t size, const TrainingFeatures& features);

}  // namespace ballast::props
