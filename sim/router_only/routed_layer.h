#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/balancers/balancer.h"
#include "core/diagnostics/expert_load_slot.h"
#include "core/model/router.h"
#include "sim/tokens/token_source.h"

namespace ballast::sim {

/// A router and its balancer, without experts: what StableLatentMoE is to a token's choice, for
/// logits that come from elsewhere. In training mode a forward shows the balancer its routing, and
/// counts when a collector is active.
class RoutedLayer : public Module, public ExpertLoadSlot {
 public:
  RoutedLayer(const RouterSettings& settings, std::unique_ptr<Balancer> balancer);

  /// Routes the logits `[tokens, experts]` of a rank's batch that `routing.scores` holds
  /// (Router::route_in_place) and adds the choices of valid tokens to `loads` `[experts]`.
  void forward(Routing<float>& routing, const TokenBatch& batch, std::size_t rank,
               std::span<std::int64_t> loads);

  Balancer& balancer() { return *balancer_; }
  const Balancer& balancer() const { return *balancer_; }

  ExpertLoadSlot* expert_load_slot() override { return this; }
  std::size_t routed_experts() const override { return router_.settings().routed_experts; }
  std::size_t top_k() const override { return router_.settings().top_k; }
  std::span<const float> biases() const override { return balancer_->biases(); }
  std::optional<std::vector<std::int64_t>>& expert_load_counts() override { return counts_; }

 private:
  Router<float> router_;
  std::unique_ptr<Balancer> balancer_;
  std::optional<std::vector<std::int64_t>> counts_;
};

}  // namespace ballast::sim
