#pragma once

#include "core/balancers/load_bias_balancer.h"

namespace ballast {

struct SmebuSettings {
  double rate = 5e-4;     ///< lambda > 0: the largest move before centring
  double kappa = 2.0;     ///< > 0: how soon a move saturates
  double momentum = 0.5;  ///< beta in [0, 1)
  LoadBiasSettings loads = {};
};

/// Soft-clamped momentum balancing of Trinity Large (arXiv:2602.17004). With L the loads of the step:
///     v_j = (mean(L) - L_j) / mean(L)
///     d_j = lambda tanh(kappa v_j),    d <- d - mean(d)
///     M_j <- beta M_j + (1 - beta) d_j,    b_j <- b_j + M_j
/// lambda 5e-4, kappa 2, beta 0.5. M starts at zero, is kept in double and is part of the state;
/// set_biases() leaves it alone.
///
/// The rules for all that moves biases by loads are those of LoadBiasBalancer; an update that does
/// not happen leaves M as it is.
class SmebuBalancer final : public LoadBiasBalancer {
 public:
  /// Throws std::invalid_argument without an expert, or for a setting outside its range.
  SmebuBalancer(std::size_t experts, const SmebuSettings& settings);

  void save(StateDict& state, const std::string& prefix) const override;
  void load(const StateDict& state, const std::string& prefix) override;

 private:
  std::vector<double> moves(std::span<const std::int64_t> counts) override;

  SmebuSettings settings_;
  std::vector<double> momentum_;
};

}  // namespace ballast
