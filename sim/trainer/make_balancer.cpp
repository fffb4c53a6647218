#include "sim/trainer/make_balancer.h"

#include <stdexcept>

#include "core/balancers/no_balancer.h"
#include "core/balancers/quantile_balancer.h"

namespace ballast::sim {

std::unique_ptr<Balancer> make_balancer(const RouterSettings& router, const BalancerSettings& settings) {
  switch (settings.kind) {
    case BalancerKind::quantile:
      return std::make_unique<QuantileBalancer>(router.routed_experts, router.top_k, settings.quantile);
    case BalancerKind::none:
      return std::make_unique<NoBalancer>(router.routed_experts);
  }
  throw std::invalid_argument("balancer: unknown kind");
}

}  // namespace ballast::sim
