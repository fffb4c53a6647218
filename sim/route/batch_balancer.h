#pragma once

#include <optional>
#include <span>
#include <vector>

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

  /// How many required biases of each expert quantile:exact keeps, about.
  struct Kept {
    double sampled;  ///< before the batch
    double share;    ///< of the batch
  };
  static Kept kept(std::size_t tokens, const RouterSettings& router);

  /// Routes the batch under the biases, into `sink` (may be null), and moves the biases. Most
  /// choices take one pass. quantile:exact first routes a sample of 256 tokens and then, of large
  /// batches, one of up to 4096; an expert for which these have said too little takes three more
  /// passes. Throws std::invalid_argument as route_batch does.
  PassCounts step(const Batch& batch, RoutingSink* sink, const Executor& executor);

 private:
  PassCounts step_by_loads(const Batch& batch, RoutingSink* sink, const Executor& executor);
  PassCounts step_by_histogram(const Batch& batch, RoutingSink* sink, const Executor& executor);
  PassCounts step_exactly(const Batch& batch, RoutingSink* sink, const Executor& executor);
  Brackets brackets(const Batch& batch, const Executor& executor) const;
  std::vector<double> exact_estimate(const BracketedQuantile& found, const Batch& batch,
                                     const Executor& executor) const;
  void set(std::span<const double> estimate);

  BalancerChoice choice_;
  RouterSettings router_;
  std::vector<float> biases_;
};

}  // namespace ballast::sim
