#pragma once

#include <map>

#include "core/balancers/quantile_estimator.h"

namespace ballast {

/// Marin's "chunk quantile averaging" (Levanter grug, TOPK mode). A chunk is what one rank observed
/// in the step; its estimate is the q-th smallest r (the q-th largest margin), q = max(1,
/// floor(m_chunk k / E)), and bhat is the mean of the chunks' estimates, each with equal weight
/// whatever its number of tokens. Ranks without valid tokens take no part. Means are taken in
/// double, in the order of the ranks.
///
/// Which tokens are on which rank matters; their order and micro-batches do not. Memory and time as
/// exact.
class ChunkMeanEstimator final : public QuantileEstimator {
 public:
  ChunkMeanEstimator(std::size_t experts, std::size_t top_k) : experts_(experts), top_k_(top_k) {}

  void observe(const ObservedForward& forward) override;
  std::optional<std::vector<double>> estimate(std::span<const float> biases) const override;
  void clear() override { chunks_.clear(); }
  std::int64_t tokens() const override;
  void save(StateDict& state, const std::string& prefix) const override;
  void load(const StateDict& state, const std::string& prefix,
            std::span<const float> biases) override;

 private:
  std::vector<float> chunk_estimate(const std::vector<float>& required) const;

  std::size_t experts_;
  std::size_t top_k_;
  std::map<std::size_t, std::vector<float>> chunks_;  ///< rank -> its r, `[tokens, experts]`
};

}  // namespace ballast
