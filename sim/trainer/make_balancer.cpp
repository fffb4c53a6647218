#include "sim/trainer/make_balancer.h"

#include <stdexcept>

#include "core/arithmetic/functions.h"
#include "core/balancers/no_balancer.h"
#include "core/balancers/quantile_balancer.h"
#include "core/balancers/sign_balancer.h"
#include "core/balancers/smebu_balancer.h"
#include "core/random/distributions.h"

namespace ballast::sim {

namespace {

/// -b of a router that is at its start, where logits are about N(0, 1): the score that k of E exceed. Otherwise the
/// first forward would run every expert for every token.
float initial_threshold(const RouterSettings& router) {
  const auto experts = static_cast<double>(router.routed_experts);
  const double z = normal_quantile(1.0 - static_cast<double>(router.top_k) / experts);
  switch (router.score) {
    case ScoreFunction::sigmoid:
      return static_cast<float>(arithmetic::sigmoid(z));
    case ScoreFunction::softmax:  // the mean of e^z is e^(1/2)
      return static_cast<float>(arithmetic::exp(z - 0.5) / experts);
    case ScoreFunction::logit:
      break;
  }
  return static_cast<float>(z);
}

std::unique_ptr<Balancer> make_threshold_balancer(const RouterSettings& router, const QuantileSettings& settings) {
  auto balancer = std::make_unique<QuantileBalancer>(router.routed_experts, router.top_k, settings);
  balancer->set_biases(std::vector<float>(router.routed_experts, -initial_threshold(router)));
  return balancer;
}

}  // namespace

std::unique_ptr<Balancer> make_balancer(const RouterSettings& router, const BalancerSettings& settings) {
  switch (settings.kind) {
    case BalancerKind::quantile:
      return std::make_unique<QuantileBalancer>(router.routed_experts, router.top_k, settings.quantile);
    case BalancerKind::sign:
      return std::make_unique<SignBalancer>(router.routed_experts, settings.sign);
    case BalancerKind::smebu:
      return std::make_unique<SmebuBalancer>(router.routed_experts, settings.smebu);
    case BalancerKind::threshold:
      return make_threshold_balancer(router, settings.threshold);
    case BalancerKind::sinkhorn:
    case BalancerKind::expert_choice:
    case BalancerKind::optimal:
    case BalancerKind::none:
      return std::make_unique<NoBalancer>(router.routed_experts);
  }
  throw std::invalid_argument("balancer: unknown kind");
}

AssignmentRule rule_of(BalancerKind kind) {
  switch (kind) {
    case BalancerKind::sinkhorn:
      return AssignmentRule::sinkhorn;
    case BalancerKind::expert_choice:
      return AssignmentRule::expert_choice;
    case BalancerKind::threshold:
      return AssignmentRule::threshold;
    case BalancerKind::optimal:
      return AssignmentRule::optimal;
    case BalancerKind::quantile:
    case BalancerKind::sign:
    case BalancerKind::smebu:
    case BalancerKind::none:
      break;
  }
  return AssignmentRule::top_k;
}

LanguageModelSettings model_settings(const Scenario& scenario) {
  LanguageModelSettings settings = scenario.model;
  settings.moe.router.assignment.rule = rule_of(scenario.balancer.kind);
  return settings;
}

}  // namespace ballast::sim
