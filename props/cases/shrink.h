#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>

#include "props/cases/case.h"

/// Smaller cases that fail the same way.
namespace ballast::props {

/// Whether a candidate still fails the same way. Called for valid conversations only: layers, ranks and
/// shapes agree, 1 <= top_k <= experts (and < experts under a quantile balancer), a load names a save
/// before it.
using StillFails = std::function<bool(const Case& candidate)>;

/// How much trying is allowed. A limit on attempts, not on time, so that a case always shrinks alike.
struct ShrinkLimits {
  std::size_t attempts = 2000;
};

/// The smallest case found greedily: requests are dropped (long runs first), then layers, ranks, tokens,
/// experts and choices, then options become plain ones, then values 0 or small integers; again and again
/// until nothing helps or the attempts are used up. Deterministic when `still_fails` is. `input` itself
/// fails.
Case shrink(Case input, const StillFails& still_fails, const ShrinkLimits& limits = {});

/// What in a case does not matter to its failure: JSON pointers into `case_json(input)` of logits,
/// biases, counts and options, each of which can have another value (of two that are tried) without the
/// failure going away. Each alone: together they may matter. At most `limits.attempts` values are tried.
std::set<std::string> irrelevant_parts(const Case& input, const StillFails& still_fails,
                                       const ShrinkLimits& limits = {.attempts = 400});

}  // namespace ballast::props
