#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace ballast {

/// How evenly the routed experts of one MoE layer are loaded, in one scope (a batch, a log
/// interval, a run). Each figure is defined once here, with the names it goes by elsewhere.
///
/// Symbols: E experts, L_j the load of expert j (assignments: tokens that chose it), total = sum_j
/// L_j, fair = total / E the load under perfect balance (the mean load), f_j = L_j / total, ln
/// natural. Perfect balance and total collapse (all on one expert) meet their bounds exactly.
struct LoadMetrics {
  /// Share of experts with L_j > 0, in [1/E, 1]. Also: utilisation, active experts; Tinker
  /// `e_frac_with_tokens`.
  double frac_with_tokens = 0.0;
  /// Share of experts with L_j > fair, strictly, in [0, 1 - 1/E]; 0 under perfect balance only.
  /// Tinker `e_frac_oversubscribed`.
  double frac_oversubscribed = 0.0;
  /// (max L - fair) / fair, in [0, E - 1]; at most E/k - 1 where a token chooses k different
  /// experts. Also: MaxVio (arXiv:2408.15664), expert-load violation; Tinker `e_max_violation`.
  double max_violation = 0.0;
  /// (min L - fair) / fair, in [-1, 0]; -1 exactly when an expert is dead. Also: MinVio; Tinker
  /// `e_min_violation`.
  double min_violation = 0.0;
  /// Population standard deviation of L (divisor E) over the mean, in [0, sqrt(E - 1)]. Also: load
  /// CV, coefficient of variation; its square is the CV^2 of the importance and load losses
  /// (arXiv:1701.06538).
  double load_cv = 0.0;
  /// -sum_j f_j ln f_j in nat, in [0, ln E]; 0 ln 0 = 0. Also: routing entropy, load entropy.
  double entropy = 0.0;
  /// entropy / ln E, in [0, 1]; 1 for a single expert. Also: normalised entropy, evenness (Pielou).
  double entropy_normalised = 0.0;
  /// sum_j f_j ln(E f_j) = ln E - entropy in nat, in [0, ln E]. Also: Theil index, Kullback-Leibler
  /// divergence of the loads from uniform.
  double kl_to_uniform = 0.0;
  /// sum_ij |L_i - L_j| / (2 E total), in [0, 1 - 1/E]. Also: Gini coefficient of the loads.
  double gini = 0.0;
  /// #{j : L_j = 0}, in [0, E - 1]. Also: unused, idle, starved or zero-load experts.
  std::int64_t dead_experts = 0;
  /// max L / fair, in [1, E]. Also: load imbalance, peak-to-mean; max_violation + 1.
  double max_over_mean = 0.0;
  /// fair / max L, in [1/E, 1]: the share of the time that experts in step with the busiest one
  /// work. Also: balancedness (vLLM's expert-parallel load balancer), load-balance efficiency; 1 /
  /// max_over_mean.
  double balancedness = 0.0;
  /// max L / min L, in [1, infinity]; infinite when an expert is dead (the convention of Primus).
  double max_over_min = 0.0;

  friend bool operator==(const LoadMetrics&, const LoadMetrics&) = default;
};

/// The metrics of one layer from its loads `[experts]`. Without any assignment every share would be
/// 0 / 0, so there is no value: neither balanced nor collapsed.
///
/// Sums and comparisons are in integers, and each figure but the entropies is one rounded
/// conversion and division (and root) away from them. Sums of logarithms run over the loads in
/// ascending order. So the metrics depend on the loads alone, not on which expert carries which, to
/// the bit. Complexity: O(E log E) time, O(E) memory. Errors: std::invalid_argument for a negative
/// load, a total above 2^53 or more than 2^20 experts.
std::optional<LoadMetrics> load_metrics(std::span<const std::int64_t> loads);

}  // namespace ballast
