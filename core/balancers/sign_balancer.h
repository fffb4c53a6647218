#pragma once

#include "core/balancers/load_bias_balancer.h"

namespace ballast {

/// How far a bias moves for a load that is off the mean.
enum class SignStep {
  sign,  ///< d_j = sign(mean(L) - L_j), sign(0) = 0
  rms,   ///< d_j = (mean(L) - L_j) / RMS over experts of (mean(L) - L); 0 when all are equal
};

struct SignSettings {
  double rate = 1e-3;  ///< u > 0
  SignStep step = SignStep::sign;
  bool centred = false;  ///< moves have mean 0, so that the mean of the biases is conserved
  LoadBiasSettings loads = {};
};

/// Loss-free balancing by fixed increments (arXiv:2408.15664, Algorithm 1; DeepSeek-V3,
/// arXiv:2412.19437, section 2.1.2):
///     b_j <- b_j + u sign(mean(L) - L_j),    u = 1e-3
/// with L the loads of the step. Without centring as DeepSeek and Megatron-LM have it; `centred` as
/// torchtitan, d <- d - mean(d). SignStep::rms is kexue.fm 10757's normalised form,
///     b_j <- b_j - u (F_j - Q_j) / RMS(F - Q),    F = L / sum(L), Q = 1 / E.
///
/// The rules for all that moves biases by loads are those of LoadBiasBalancer.
class SignBalancer final : public LoadBiasBalancer {
 public:
  /// Throws std::invalid_argument without an expert, or for a rate that is not finite and positive.
  SignBalancer(std::size_t experts, const SignSettings& settings);

 private:
  std::vector<double> moves(std::span<const std::int64_t> counts) override;

  SignSettings settings_;
};

}  // namespace ballast
