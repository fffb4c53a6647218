#include "core/metrics/moe_metrics.h"

#include <algorithm>

namespace ballast {

namespace {

using Figure = double LoadMetrics::*;

double mean_over_layers(std::span<const LoadMetrics> layers, Figure figure) {
  double sum = 0.0;
  for (const LoadMetrics& layer : layers) sum += layer.*figure;
  return sum / static_cast<double>(layers.size());
}

double max_over_layers(std::span<const LoadMetrics> layers, Figure figure) {
  double max = layers.front().*figure;
  for (const LoadMetrics& layer : layers) max = std::max(max, layer.*figure);
  return max;
}

}  // namespace

Metrics moe_metrics(std::span<const LoadMetrics> layers) {
  if (layers.empty()) return {};
  return {
      {metric_key::frac_with_tokens_mean, mean_over_layers(layers, &LoadMetrics::frac_with_tokens)},
      {metric_key::frac_oversubscribed_mean,
       mean_over_layers(layers, &LoadMetrics::frac_oversubscribed)},
      {metric_key::max_violation_mean, mean_over_layers(layers, &LoadMetrics::max_violation)},
      {metric_key::max_violation_max, max_over_layers(layers, &LoadMetrics::max_violation)},
      {metric_key::min_violation_mean, mean_over_layers(layers, &LoadMetrics::min_violation)},
  };
}

Metrics moe_metrics(std::span<const std::vector<std::int64_t>> loads) {
  std::vector<LoadMetrics> layers;
  for (const auto& layer : loads) {
    if (const auto metrics = load_metrics(layer)) layers.push_back(*metrics);
  }
  return moe_metrics(layers);
}

}  // namespace ballast
