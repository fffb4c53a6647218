#pragma once

#include <map>

#include "core/balancers/quantile_estimator.h"

namespace ballast {

/// Megatron-LM's micro-batch scope (#5349): the exact estimate of every micro-batch, the mean of
/// these over a rank's micro-batches, then the mean over ranks, each rank with equal weight
/// whatever its number of tokens. Means are taken in double, in the order of the ranks and, within
/// a rank, in the order of arrival.
///
/// Two choices where Megatron has none or another: a micro-batch of m tokens with m k not divisible
/// by E takes the (floor(m k / E) + 1)-th smallest r, where Megatron asserts; and only ranks that
/// observed a valid token take part in the mean, where in Megatron a rank without micro-batches
/// adds a vector of zeros.
class MicrobatchMeanEstimator final : public QuantileEstimator {
 public:
  MicrobatchMeanEstimator(std::size_t experts, std::size_t top_k)
      : experts_(experts), top_k_(top_k) {}

  void observe(const ObservedForward& forward) override;
  std::optional<std::vector<double>> estimate(std::span<const float> biases) const override;
  void clear() override { ranks_.clear(); }
  std::int64_t tokens() const override;
  void save(StateDict& state, const std::string& prefix) const override;
  void load(const StateDict& state, const std::string& prefix,
            std::span<const float> biases) override;

 private:
  struct RankSum {
    std::int64_t microbatches = 0;
    std::int64_t tokens = 0;
    std::vector<double> sum;  ///< of the micro-batches' estimates, `[experts]`
  };

  std::size_t experts_;
  std::size_t top_k_;
  std::map<std::size_t, RankSum> ranks_;
};

}  // namespace ballast
