#pragma once

#include <memory>
#include <string>

#include "props/subjects/subject.h"

namespace ballast::props {

/// What a balancing subject can do wrong, each a line or two of a plain balancer.
enum class BalancerFault {
  none,
  legitimate_variant,  ///< no fault: histogram and mean in fp32, with other expressions; centred
                       ///< signs
  // The exact estimate
  biased_margin,    ///< r from s + b instead of s
  increment,        ///< b += bhat
  wrong_sign,       ///< b = -bhat
  kth_cutoff,       ///< alpha is the k-th largest
  midpoint_cutoff,  ///< alpha lies between the k-th and the (k+1)-th
  qth_rank,         ///< the q-th smallest r instead of the (q+1)-th
  interpolated,     ///< a library quantile at k / E
  per_rank_mean,
  per_forward_mean,
  last_forward_only,
  not_centred,
  half_precision,     ///< biases rounded to 8 significant bits
  other_score_space,  ///< r from sigmoids of the scores
  by_expert_index,    ///< higher experts are favoured a little
  // The histogram
  stale_range,   ///< of the biases before the last move
  narrow_range,  ///< half a unit around the biases
  fixed_range,   ///< -1 to 1 whatever the biases are
  floor_rank,
  middle_of_bin,
  // The sign rule
  frequency_target,  ///< sign(k / E - count)
  // Cadence
  moves_at_forward,
  never_moves,
  moves_at_skipped_step,
  other_overflow_policy,
  keeps_pending,  ///< after a step
  moves_from_nothing,
  half_the_tokens,  ///< of batches of two or more
  counts_batches,   ///< the last token of a step weighs double
  takes_not_finite,
  // What surrounds the balancer
  observes_evaluation,
  observes_recompute,
  observes_padding,
  routes_without_bias,
  routes_in_half_precision,  ///< with biases of 8 significant bits
  evaluates_with_other_sign,
  looks_ahead,  ///< the batch's own mean scores move its choices
  first_layer_only,
  next_layer,  ///< observations go to the next layer
  snapshot_clears_pending,
  step_answers_old_biases,
};

/// The built-in subject with a plain balancer of its own, exact, histogram and sign, and a fault.
std::unique_ptr<Subject> faulty_balancer(BalancerFault fault,
                                         OnOverflow on_overflow = OnOverflow::discard);

}  // namespace ballast::props
