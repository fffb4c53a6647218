#pragma once

#include <memory>

#include "core/balancers/balancer.h"

namespace ballast::sim {

/// Mistakes of real training code that a scenario can put into its balancer, to show what they do.
enum class BalancerFault {
  none,
  increment,        ///< adds the new biases to the old ones instead of setting them
  biased_margin,    ///< takes margins from biased scores, s + b - alpha
  padding_counted,  ///< observes padded tokens like others (Megatron-LM#5349)
  bf16_biases,      ///< keeps biases in bf16 (Megatron-LM#1482)
  lost_at_restart,  ///< comes back from a checkpoint with zero biases (torchtitan#1403, #1222)
  evaluation_leak,  ///< observes evaluations like training (torchtitan#4412, #4148)
  bf16_counts,      ///< counts loads in bf16, one by one: not beyond 256 (Megatron-LM#7081)
};

/// The balancer with the fault in it. `evaluation_leak` is not the balancer's own: whoever runs
/// evaluations shows them to it. Throws std::invalid_argument for `bf16_counts` with a balancer
/// that counts no loads.
std::unique_ptr<Balancer> with_fault(std::unique_ptr<Balancer> balancer, BalancerFault fault);

}  // namespace ballast::sim
