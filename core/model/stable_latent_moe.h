#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/balancers/balancer.h"
#include "core/executor.h"
#include "core/model/glu.h"
#include "core/model/linear.h"
#include "core/model/module.h"
#include "core/model/rms_norm.h"
#include "core/model/routed_experts.h"
#include "core/model/router.h"
#include "core/model/router_losses.h"
#include "core/model/settings.h"

namespace ballast {

/// How a forward runs, beside the module's train/eval mode.
struct ForwardContext {
  const Executor& executor = serial_executor();
  std::span<const std::uint8_t> valid = {};  ///< `[tokens]`, 0 is padding; empty: every token is valid
  std::size_t rank = 0;                      ///< simulated data-parallel rank
  bool recompute = false;  ///< a repeat of an earlier training forward: neither observed nor counted
  std::size_t sequence_length = 0;  ///< rows of a sequence; 0: all rows are one sequence
  double loss_scale = 1.0;  ///< factor on the gradient that `backward` is given, which router losses follow
};

/// A layer of StableLatentMoE (Kimi K3 report section 2.3, Eq. 11-13):
///
///     s = score(W_r x)                         full-width x
///     T = the k largest of s + b
///     p_j = s_j / (sum over T of s + 1e-20) * routed_scale
///     z = W_down x                             hidden -> latent
///     u = sum over T of p_j E_j(z)
///     y = sum over h of S_h(x) + W_up RMSNorm(u)
///
/// The norm acts once a token on the weighted, summed aggregate. Shared experts see full-width x, unweighted;
/// they are kept as one GLU of shared_experts times the inner width, which is the same function.
///
/// T is chosen, and perhaps dropped for want of capacity, as Router says. Router losses (RouterLosses) of a forward in
/// training add their gradient in `backward`, and their values change no output.
///
/// A forward in training mode that is no recomputation shows the balancer its routing and, when a collector
/// is active, counts the chosen experts of the valid tokens. Choices are made with the biases in force when
/// the forward begins: an update never changes the batch it came from.
template <class Real>
class StableLatentMoE : public Module, public ExpertLoadSlot {
 public:
  /// `balancer` must be of as many experts as the settings say.
  StableLatentMoE(const StableLatentMoESettings& settings, std::unique_ptr<Balancer> balancer);

  /// x `[tokens, hidden]` to y `[tokens, hidden]`, which stands until the next forward, as does what `backward` needs.
  /// Linear in tokens: about 2 (E + 2 l + 3 k l inner / d + 3 inner_shared) d operations each.
  const Matrix<Real>& forward(MatrixView<const Real> x, const ForwardContext& context);
  /// Of the last forward, once: from dy to dx, which stands until the next one; adds the gradients of all parameters,
  /// those of the router losses included.
  const Matrix<Real>& backward(MatrixView<const Real> dy, const Executor& executor);

  /// Closes an optimizer step: of the balancer, and of losses that count the step so far.
  void end_step(bool applied);

  /// The router losses of the last forward; zeros in evaluation.
  RouterLossValues loss_values() const { return losses_.values(cache_.routing); }
  /// What the last forward decided.
  const Routing<Real>& routing() const { return cache_.routing; }
  Balancer& balancer() { return *balancer_; }
  const Balancer& balancer() const { return *balancer_; }
  const StableLatentMoESettings& settings() const { return settings_; }

  ExpertLoadSlot* expert_load_slot() override { return this; }
  std::size_t routed_experts() const override { return settings_.router.routed_experts; }
  std::size_t top_k() const override { return settings_.router.top_k; }
  std::span<const float> biases() const override { return balancer_->biases(); }
  std::optional<std::vector<std::int64_t>>& expert_load_counts() override { return expert_load_counts_; }

  Router<Real> router;
  Linear<Real> down;  ///< W_down
  RoutedExperts<Real> experts;
  std::optional<RmsNorm<Real>> norm;
  Linear<Real> up;  ///< W_up
  std::optional<Glu<Real>> shared;

 private:
  struct Cache {
    Matrix<Real> x;
    Routing<Real> routing;
    RoutedExpertsCache<Real> experts;
    Matrix<Real> aggregate;  ///< u
    Matrix<Real> normed;     ///< RMSNorm(u), or u without norm
    std::vector<Real> inverse_rms;
    GluCache<Real> shared;
    Real loss_scale{1};
  };
  /// What no later call reads but its caller, kept for its memory.
  struct Scratch {
    Matrix<Real> z, y, part, daggregate, dz, dp, dx;
  };

  std::vector<std::uint8_t> valid_rows(const ForwardContext& context) const;
  void take_losses(const ForwardContext& context);
  void observe(const ForwardContext& context);
  void count(const ForwardContext& context);

  StableLatentMoESettings settings_;
  std::unique_ptr<Balancer> balancer_;
  RouterLosses<Real> losses_;
  std::optional<std::vector<std::int64_t>> expert_load_counts_;
  Cache cache_;
  Scratch scratch_;
};

}  // namespace ballast
