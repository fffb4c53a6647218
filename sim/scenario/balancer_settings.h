#pragma once

#include "core/balancers/quantile_settings.h"
#include "core/balancers/sign_balancer.h"
#include "core/balancers/smebu_balancer.h"

namespace ballast::sim {

enum class BalancerKind { quantile, sign, smebu, none };

/// The settings of every kind; those of other kinds than `kind` mean nothing.
struct BalancerSettings {
  BalancerKind kind = BalancerKind::quantile;
  QuantileSettings quantile;
  SignSettings sign;
  SmebuSettings smebu;
};

}  // namespace ballast::sim
