#include "sim/trainer/make_balancer.h"

#include <stdexcept>

#include "core/balancers/no_balancer.h"
#include "core/balancers/quantile_balancer.h"
#include "core/balancers/sign_balancer.h"
#include "core/balancers/smebu_balancer.h"

namespace ballast::sim {

std::unique_ptr<Balancer> make_balancer(const RouterSettings& router, const BalancerSettings& settings) {
  switch (settings.kind) {
    case BalancerKind::quantile:
      return std::make_unique<QuantileBalancer>(router.routed_experts, router.top_k, settings.quantile);
    case BalancerKind::sign:
      return std::make_unique<SignBalancer>(router.routed_experts, settings.sign);
    case BalancerKind::smebu:
      return std::make_unique<SmebuBalancer>(router.routed_experts, settings.smebu);
    case BalancerKind::none:
      return std::make_unique<NoBalancer>(router.routed_experts);
  }
  throw std::invalid_argument("balancer: unknown kind");
}

}  // namespace ballast::sim
