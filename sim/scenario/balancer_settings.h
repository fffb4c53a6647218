#pragma once

#include "core/balancers/quantile_settings.h"
#include "core/balancers/sign_balancer.h"
#include "core/balancers/smebu_balancer.h"

namespace ballast::sim {

/// What keeps the load of experts in balance: biases that move from step to step (quantile, sign, smebu), a rule that
/// assigns each batch (sinkhorn, expert_choice, optimal), or both (threshold). Router losses and capacities go beside it.
enum class BalancerKind { quantile, sign, smebu, sinkhorn, expert_choice, threshold, optimal, none };

/// The settings of every kind; those of other kinds than `kind` mean nothing.
struct BalancerSettings {
  BalancerKind kind = BalancerKind::quantile;
  QuantileSettings quantile;
  SignSettings sign;
  SmebuSettings smebu;
  /// Of `threshold`: dynamic activation (kexue.fm 11626), lambda 0.9.
  QuantileSettings threshold = {
      .estimator = QuantileEstimatorKind::exact, .ema = 0.9, .per_expert = true};
};

}  // namespace ballast::sim
