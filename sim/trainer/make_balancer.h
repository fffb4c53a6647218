#pragma once

#include <memory>

#include "core/balancers/balancer.h"
#include "sim/scenario/scenario.h"

namespace ballast::sim {

/// A balancer of one layer as a scenario asks for it.
std::unique_ptr<Balancer> make_balancer(const RouterSettings& router, const BalancerSettings& settings);

}  // namespace ballast::sim
