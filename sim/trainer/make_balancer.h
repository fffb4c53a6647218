#pragma once

#include <memory>

#include "core/balancers/balancer.h"
#include "sim/scenario/scenario.h"

namespace ballast::sim {

/// A balancer of one layer as a scenario asks for it.
std::unique_ptr<Balancer> make_balancer(const RouterSettings& router, const BalancerSettings& settings);

/// The rule by which a router assigns tokens when its balancer is of this kind.
AssignmentRule rule_of(BalancerKind kind);

/// The model of a scenario with the rule of its balancer.
LanguageModelSettings model_settings(const Scenario& scenario);

}  // namespace ballast::sim
