#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/balancers/bracketed_quantile.h"
#include "core/balancers/histogram.h"
#include "core/balancers/windowed_histogram.h"
#include "sim/route/balancer_choice.h"
#include "sim/route/batch_pass.h"

namespace ballast::sim {

/// Moves biases by what a batch comes to, as the core's balancer of that choice does with the whole
/// batch as one step, to the bit, but without holding the batch: from passes over it.
class BatchBalancer {
 public:
  /// Throws std::invalid_argument when the choice does not go with the router.
  BatchBalancer(const BalancerChoice& choice, const RouterSettings& router,
                std::vector<float> biases);

  std::span<const float> biases() const { return biases_; }

  /// How many required biases of each expert a quantile keeps, about.
  struct Kept {
    std::size_t sampled;  ///< before the batch, at most
    double share;         ///< of the batch
  };
  static Kept kept(std::size_t tokens, const RouterSettings& router, BalancerChoice::Kind kind);

  /// Routes the batch under the biases, into `sink` (may be null), and moves the biases. Most
  /// choices take one pass. Of more than 2048 tokens the quantiles first route a sample of 256 and
  /// then, of 8192 and more, one of 512 to 4096, this twice where the first has misled it. An
  /// expert for which these have said too little takes three more passes with quantile:exact. With
  /// quantile:histogram, which routes the first sample again to see how many values are in the bins
  /// that it would count, it takes one. Throws std::invalid_argument as route_batch does.
  PassCounts step(const Batch& batch, RoutingSink* sink, const Executor& executor);

 private:
  PassCounts step_by_loads(const Batch& batch, RoutingSink* sink, const Executor& executor);
  PassCounts step_by_histogram(const Batch& batch, RoutingSink* sink, const Executor& executor);
  PassCounts step_exactly(const Batch& batch, RoutingSink* sink, const Executor& executor);
  std::optional<WindowedHistogram> windows(const HistogramRange& range, const Batch& batch,
                                           const Executor& executor) const;
  PassCounts step_by_windows(WindowedHistogram windows, const Batch& batch, RoutingSink* sink,
                             const Executor& executor);
  /// Of the (position + 1)-th smallest required bias of each expert.
  Brackets brackets(std::int64_t position, const Batch& batch, const Executor& executor) const;
  std::vector<double> histogram_estimate(const WindowedHistogram& found, const Batch& batch,
                                         const Executor& executor) const;
  std::vector<double> exact_estimate(const BracketedQuantile& found, const Batch& batch,
                                     const Executor& executor) const;
  void set(std::span<const double> estimate);

  BalancerChoice choice_;
  RouterSettings router_;
  std::vector<float> biases_;
};

}  // namespace ballast::sim
