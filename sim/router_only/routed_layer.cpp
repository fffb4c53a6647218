#include "sim/router_only/routed_layer.h"

#include <utility>

#include "core/model/selection.h"

namespace ballast::sim {
namespace {

/// The gate is never used; this keeps its matrix small.
RouterSettings without_width(RouterSettings settings) {
  settings.hidden = 1;
  return settings;
}

}  // namespace

RoutedLayer::RoutedLayer(const RouterSettings& settings, std::unique_ptr<Balancer> balancer)
    : router_(without_width(settings)), balancer_(std::move(balancer)) {}

void RoutedLayer::forward(Routing<float>& routing, const TokenBatch& batch, std::size_t rank,
                          std::span<std::int64_t> loads) {
  const std::span<const std::uint8_t> valid = batch.valid;
  router_.route_in_place(routing, balancer_->biases(), {.valid = valid, .training = training()});
  const auto& indices = routing.selection.indices;
  count_assignments(indices, valid, loads);
  if (!training()) return;
  if (counts_) count_assignments(indices, valid, *counts_);
  std::vector<std::uint8_t> observed = routing.finite;
  for (std::size_t t = 0; t < observed.size(); ++t) observed[t] = observed[t] && valid[t];
  balancer_->observe({.scores = routing.scores,
                      .cutoffs = routing.selection.cutoffs,
                      .indices = indices,
                      .valid = observed,
                      .rank = rank,
                      .sequence_length = batch.length,
                      .kept = routing.kept});
}

}  // namespace ballast::sim
