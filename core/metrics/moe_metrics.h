#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/metrics/load_metrics.h"

namespace ballast {

/// Named figures of a training call, by key `name:reduction`; the reduction says how chunks
/// combine.
using Metrics = std::map<std::string, double>;

/// The keys under which an MoE model reports its load balance. Source:
/// tinker.types.ForwardBackwardOutput.
namespace metric_key {
inline constexpr const char* frac_with_tokens_mean = "e_frac_with_tokens:mean";
inline constexpr const char* frac_oversubscribed_mean = "e_frac_oversubscribed:mean";
inline constexpr const char* max_violation_mean = "e_max_violation:mean";
inline constexpr const char* max_violation_max = "e_max_violation:max";
inline constexpr const char* min_violation_mean = "e_min_violation:mean";

inline constexpr std::array moe = {frac_with_tokens_mean, frac_oversubscribed_mean,
                                   max_violation_mean, max_violation_max, min_violation_mean};
}  // namespace metric_key

/// The five MoE metrics over the layers of a model: each figure is taken per layer, then its mean
/// or maximum over layers, summed in layer order. All five keys, or an empty map without layers.
Metrics moe_metrics(std::span<const LoadMetrics> layers);

/// The same from loads `[layers][experts]`; layers may differ in their number of experts. A layer
/// without assignments has no figures and is left out. Errors: as `load_metrics`.
Metrics moe_metrics(std::span<const std::vector<std::int64_t>> loads);

}  // namespace ballast
