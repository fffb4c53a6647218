#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/simulation/records.h"

namespace ballast::sim {

/// The ways in which routing fails to use its experts.
enum class CollapseKind {
  dead_experts,  ///< an eighth of a layer's experts or more, and always the same, get nothing
  monopoly,  ///< k experts take half of what is between balance and all, or one nearly all tokens
  oscillation,       ///< each step's loads are the reverse of those of the last or the one before
  drift,             ///< the max violation rises from one fifth of the run to the next
  divergence,        ///< the loss is not finite, or the biases run away
  blind,             ///< loads are even, and no gradient of the loss reaches the routers
  input_degenerate,  ///< too few different inputs to reach all experts: the data's doing, no
                     ///< collapse
};

/// "dead_experts" for CollapseKind::dead_experts.
std::string_view word(CollapseKind kind);

/// A kind that was found, its first step and the number of layers with it (1 for those of the whole
/// run).
struct CollapseFinding {
  CollapseKind kind = CollapseKind::monopoly;
  std::size_t onset = 0;
  std::size_t layers = 1;

  friend bool operator==(const CollapseFinding&, const CollapseFinding&) = default;
};

enum class CollapseVerdict {
  healthy,
  collapsed,
  input_degenerate,  ///< all data was, so there is nothing to say of the routing
  unknown,           ///< too few tokens to tell collapse from chance
};

/// "healthy" for CollapseVerdict::healthy.
std::string_view word(CollapseVerdict verdict);

struct CollapseReport {
  CollapseVerdict verdict = CollapseVerdict::unknown;
  std::vector<CollapseFinding> findings;  ///< in the order of their onset

  std::optional<CollapseFinding> find(CollapseKind kind) const;
};

/// Looks for collapse in the loads `[layers][experts]` of a run's steps. Symbols: m tokens, k
/// choices of each, E experts, fair load q = m k / E.
///
/// Steps are put together into windows of at least 24 expected assignments an expert, so that a
/// fair expert stays without any with a probability of e^-24; a finding has to last three windows.
/// A monopoly has to be above what chance makes of such windows too (noise.h). With less than three
/// windows the verdict is unknown.
///
/// - dead_experts: E/8 experts (at least one) that have no assignment in three windows running.
/// - monopoly: with C the share of assignments of the k busiest, (C - k/E) / (1 - k/E) >= 1/2; or
/// with h the
///   share of tokens that choose the busiest, (h - k/E) / (1 - k/E) >= 4/5.
/// - oscillation: with d_j(t) an expert's violation at step t less its mean over 8 steps, a
/// correlation of d at
///   distance 1 or 2 below -1/2 and a root mean square of d above 1/2 and above three times that of
///   chance, sqrt((1 - k/E) / q), in two blocks of 8 steps running.
/// - drift: the mean of the windows' max violation rises from each fifth of the windows to the next
/// by a tenth
///   or more of the whole rise, which is above 1/2 and above chance.
/// - divergence: a loss that is not finite, or a range of biases above 16 times the first one that
/// is not 0
///   (but at least 4).
/// - blind: for 8 steps running the router's part of the gradient norm is below 1e-5 and each
/// layer's max
///   violation below twice what chance makes.
/// - input_degenerate: three windows running whose different inputs times k are fewer than E. Such
/// windows
///   tell nothing of the other kinds, but for divergence and blindness.
///
/// Linear in steps x layers x experts (times log).
CollapseReport find_collapse(std::span<const StepRecord> steps, std::size_t top_k);

}  // namespace ballast::sim
