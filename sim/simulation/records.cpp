#include "sim/simulation/records.h"

#include "core/metrics/load_metrics.h"
#include "core/metrics/moe_metrics.h"

namespace ballast::sim {

Figures load_figures(const Loads& loads) {
  std::vector<LoadMetrics> layers;
  for (const auto& layer : loads) {
    if (const auto metrics = load_metrics(layer)) layers.push_back(*metrics);
  }
  Figures figures = moe_metrics(layers);
  if (layers.empty()) return figures;
  const auto mean = [&](double LoadMetrics::*field) {
    double sum = 0.0;
    for (const auto& layer : layers) sum += layer.*field;
    return sum / static_cast<double>(layers.size());
  };
  std::int64_t dead = 0;
  for (const auto& layer : layers) dead += layer.dead_experts;
  figures["dead_experts"] = static_cast<double>(dead);
  figures["load_cv"] = mean(&LoadMetrics::load_cv);
  figures["entropy"] = mean(&LoadMetrics::entropy);
  figures["gini"] = mean(&LoadMetrics::gini);
  figures["balancedness"] = mean(&LoadMetrics::balancedness);
  return figures;
}

}  // namespace ballast::sim
