#pragma once

#include "core/assignment/capacity.h"
#include "core/assignment/sinkhorn.h"

namespace ballast {

/// By what rule the tokens of a batch get their experts. A rule looks at one batch and remembers nothing; what is
/// remembered from step to step are the biases b, which a Balancer keeps.
enum class AssignmentRule {
  top_k,          ///< each token its k largest s + b, perhaps inside groups: select_top_k
  sinkhorn,       ///< in training each token its k largest of the balanced plan: sinkhorn_plan; else top_k
  expert_choice,  ///< each expert its m k / E largest s + b: choose_by_expert
  threshold,      ///< each token all experts with s + b > 0: choose_above_threshold
  optimal,        ///< in training the best balanced assignment: assign_optimally; else top_k
};

struct AssignmentSettings {
  AssignmentRule rule = AssignmentRule::top_k;
  SinkhornSettings sinkhorn = {};
  CapacitySettings capacity = {};  ///< of experts, whatever the rule
};

}  // namespace ballast
