#include "core/balancers/chunk_mean_estimator.h"

#include <algorithm>

#include "core/balancers/order_statistics.h"
#include "core/balancers/per_rank_state.h"
#include "core/balancers/required_biases.h"

namespace ballast {

void ChunkMeanEstimator::observe(const ObservedForward& forward) {
  append_required_biases(forward.tokens, chunks_[forward.rank]);
}

std::optional<std::vector<double>> ChunkMeanEstimator::estimate(std::span<const float>) const {
  if (chunks_.empty()) return std::nullopt;
  std::vector<double> mean(experts_);
  for (const auto& [rank, required] : chunks_) {
    const auto estimate = chunk_estimate(required);
    for (std::size_t j = 0; j < experts_; ++j) mean[j] += static_cast<double>(estimate[j]);
  }
  for (double& value : mean) value /= static_cast<double>(chunks_.size());
  return mean;
}

std::vector<float> ChunkMeanEstimator::chunk_estimate(const std::vector<float>& required) const {
  const std::size_t tokens = required.size() / experts_;
  const std::size_t q = std::max<std::size_t>(1, tokens * top_k_ / experts_);
  return column_order_statistics({required.data(), tokens, experts_}, q - 1);
}

std::int64_t ChunkMeanEstimator::tokens() const {
  std::size_t values = 0;
  for (const auto& [rank, required] : chunks_) values += required.size();
  return static_cast<std::int64_t>(values / experts_);
}

void ChunkMeanEstimator::save(StateDict& state, const std::string& prefix) const {
  std::vector<std::int64_t> ranks, tokens;
  std::vector<float> required;
  for (const auto& [rank, chunk] : chunks_) {
    ranks.push_back(static_cast<std::int64_t>(rank));
    tokens.push_back(static_cast<std::int64_t>(chunk.size() / experts_));
    required.insert(required.end(), chunk.begin(), chunk.end());
  }
  state.put(prefix + "chunk_mean.ranks", ranks);
  state.put(prefix + "chunk_mean.tokens", tokens);
  state.put(prefix + "chunk_mean.required", required);
}

void ChunkMeanEstimator::load(const StateDict& state, const std::string& prefix,
                              std::span<const float>) {
  const auto ranks = load_ranks(state, prefix + "chunk_mean.ranks");
  const auto tokens = load_counts(state, prefix + "chunk_mean.tokens", ranks.size());
  const auto& required = state.get<float>(prefix + "chunk_mean.required");
  check_required_biases(required, experts_, prefix + "chunk_mean.required");
  check_total(tokens, required.size() / experts_, prefix + "chunk_mean.tokens");
  chunks_.clear();
  auto next = required.begin();
  for (std::size_t c = 0; c < ranks.size(); ++c) {
    const auto end = next + tokens[c] * static_cast<std::int64_t>(experts_);
    chunks_.emplace(ranks[c], std::vector<float>(next, end));
    next = end;
  }
}

}  // namespace ballast
