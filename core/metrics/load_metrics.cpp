#include "core/metrics/load_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/arithmetic/functions.h"

namespace ballast {

namespace {

// Within these limits E * sum L^2 and total^2 are at most 2^126.
constexpr std::int64_t max_total = std::int64_t{1} << 53;
constexpr std::size_t max_experts = std::size_t{1} << 20;

__extension__ using Wide = __int128;

double ratio(Wide numerator, Wide denominator) {
  return static_cast<double>(numerator) / static_cast<double>(denominator);
}

std::int64_t checked_total(std::span<const std::int64_t> loads) {
  if (loads.size() > max_experts) {
    throw std::invalid_argument("loads: " + std::to_string(loads.size()) +
                                " experts; load metrics are defined for at most 2^20");
  }
  std::int64_t total = 0;
  for (std::size_t expert = 0; expert < loads.size(); ++expert) {
    const std::int64_t load = loads[expert];
    if (load < 0) {
      throw std::invalid_argument("loads: expert " + std::to_string(expert) + " has the load " +
                                  std::to_string(load) + "; a load is a count, at least 0");
    }
    if (load > max_total - total) {
      throw std::invalid_argument("loads: more than 2^53 assignments up to expert " +
                                  std::to_string(expert) +
                                  "; load metrics are exact up to that many");
    }
    total += load;
  }
  return total;
}

/// Loads in ascending order, with what the metrics share. At least one assignment.
struct SortedLoads {
  std::vector<std::int64_t> loads;
  Wide experts;
  Wide total;

  std::int64_t min() const { return loads.front(); }
  std::int64_t max() const { return loads.back(); }
};

std::int64_t dead_experts(const SortedLoads& sorted) {
  return std::upper_bound(sorted.loads.begin(), sorted.loads.end(), 0) - sorted.loads.begin();
}

std::int64_t oversubscribed_experts(const SortedLoads& sorted) {
  return std::count_if(sorted.loads.begin(), sorted.loads.end(),
                       [&](std::int64_t load) { return load * sorted.experts > sorted.total; });
}

/// sqrt(E sum L^2 - total^2) / total: the deviation over the mean, both multiplied by E.
double load_cv(const SortedLoads& sorted) {
  Wide squares = 0;
  for (const std::int64_t load : sorted.loads) squares += static_cast<Wide>(load) * load;
  const Wide variance = sorted.experts * squares - sorted.total * sorted.total;
  return std::sqrt(static_cast<double>(variance)) / static_cast<double>(sorted.total);
}

/// sum_i (2 i - E + 1) L_(i) / (E total), i = 0.. in ascending order: each pair's difference once.
double gini(const SortedLoads& sorted) {
  Wide differences = 0;
  Wide weight = 1 - sorted.experts;
  for (const std::int64_t load : sorted.loads) {
    differences += weight * load;
    weight += 2;
  }
  return ratio(differences, sorted.experts * sorted.total);
}

/// Taken from the ratios E f_j, which are exactly 1 under perfect balance, so that the divergence
/// is 0 then.
double kl_to_uniform(const SortedLoads& sorted, double log_experts) {
  double sum = 0.0;
  for (const std::int64_t load : sorted.loads) {
    if (load == 0) continue;
    sum += ratio(load, sorted.total) * arithmetic::log(ratio(load * sorted.experts, sorted.total));
  }
  return std::clamp(sum, 0.0, log_experts);
}

}  // namespace

std::optional<LoadMetrics> load_metrics(std::span<const std::int64_t> loads) {
  const std::int64_t total = checked_total(loads);
  if (total == 0) return std::nullopt;
  SortedLoads sorted{{loads.begin(), loads.end()}, static_cast<Wide>(loads.size()), total};
  std::sort(sorted.loads.begin(), sorted.loads.end());

  const Wide experts = sorted.experts;
  const Wide peak = sorted.max() * experts;  // max / fair = peak / total
  const double log_experts = arithmetic::log(static_cast<double>(experts));
  const std::int64_t dead = dead_experts(sorted);
  const double divergence = kl_to_uniform(sorted, log_experts);
  return LoadMetrics{
      .frac_with_tokens = ratio(experts - dead, experts),
      .frac_oversubscribed = ratio(oversubscribed_experts(sorted), experts),
      .max_violation = ratio(peak - total, total),
      .min_violation = ratio(sorted.min() * experts - total, total),
      .load_cv = load_cv(sorted),
      .entropy = log_experts - divergence,
      .entropy_normalised = experts == 1 ? 1.0 : (log_experts - divergence) / log_experts,
      .kl_to_uniform = divergence,
      .gini = gini(sorted),
      .dead_experts = dead,
      .max_over_mean = ratio(peak, total),
      .balancedness = ratio(total, peak),
      .max_over_min = sorted.min() == 0 ? std::numeric_limits<double>::infinity()
                                        : ratio(sorted.max(), sorted.min()),
  };
}

}  // namespace ballast
