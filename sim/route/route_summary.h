#pragma once

#include <nlohmann/json_fwd.hpp>
#include <ostream>

#include "core/model/settings.h"
#include "sim/route/balancer_choice.h"
#include "sim/route/batch_steps.h"

namespace ballast::sim {

/// What `ballast route` was asked for.
struct RouteQuestion {
  RouterSettings router;
  BalancerChoice balancer;
  std::size_t steps = 1;
  bool timing = false;
};

/// tokens, valid_tokens, not_finite_tokens, experts, top_k, score, renormalize, scale, balancer,
/// steps; metrics.before, metrics.after and metrics.steps with the five metrics each (null without
/// a valid token); and with timing, timing.{read,route,balance,write}_ns_per_token_expert.
nlohmann::ordered_json route_json(const RouteQuestion& question, std::size_t tokens,
                                  const BatchSteps& result);

/// The same for people.
void write_route_text(const RouteQuestion& question, std::size_t tokens, const BatchSteps& result,
                      std::ostream& out);

}  // namespace ballast::sim
