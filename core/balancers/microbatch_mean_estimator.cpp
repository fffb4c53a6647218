#include "core/balancers/microbatch_mean_estimator.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/balancers/order_statistics.h"
#include "core/balancers/per_rank_state.h"
#include "core/balancers/required_biases.h"

namespace ballast {

void MicrobatchMeanEstimator::observe(const ObservedForward& forward) {
  std::vector<float> required;
  append_required_biases(forward.tokens, required);
  const std::size_t tokens = forward.tokens.observed_tokens();
  const auto estimate =
      column_order_statistics({required.data(), tokens, experts_}, tokens * top_k_ / experts_);
  RankSum& rank = ranks_[forward.rank];
  rank.sum.resize(experts_);
  for (std::size_t j = 0; j < experts_; ++j) rank.sum[j] += static_cast<double>(estimate[j]);
  rank.tokens += static_cast<std::int64_t>(tokens);
  ++rank.microbatches;
}

std::optional<std::vector<double>> MicrobatchMeanEstimator::estimate(std::span<const float>) const {
  if (ranks_.empty()) return std::nullopt;
  std::vector<double> mean(experts_);
  for (const auto& [index, rank] : ranks_) {
    for (std::size_t j = 0; j < experts_; ++j) {
      mean[j] += rank.sum[j] / static_cast<double>(rank.microbatches);
    }
  }
  for (double& value : mean) value /= static_cast<double>(ranks_.size());
  return mean;
}

std::int64_t MicrobatchMeanEstimator::tokens() const {
  std::int64_t total = 0;
  for (const auto& [index, rank] : ranks_) total += rank.tokens;
  return total;
}

void MicrobatchMeanEstimator::save(StateDict& state, const std::string& prefix) const {
  std::vector<std::int64_t> indices, microbatches, tokens;
  std::vector<double> sums;
  for (const auto& [index, rank] : ranks_) {
    indices.push_back(static_cast<std::int64_t>(index));
    microbatches.push_back(rank.microbatches);
    tokens.push_back(rank.tokens);
    sums.insert(sums.end(), rank.sum.begin(), rank.sum.end());
  }
  state.put(prefix + "microbatch_mean.ranks", indices);
  state.put(prefix + "microbatch_mean.microbatches", microbatches);
  state.put(prefix + "microbatch_mean.tokens", tokens);
  state.put(prefix + "microbatch_mean.sums", sums);
}

void MicrobatchMeanEstimator::load(const StateDict& state, const std::string& prefix,
                                   std::span<const float>) {
  const auto indices = load_ranks(state, prefix + "microbatch_mean.ranks");
  const auto microbatches =
      load_counts(state, prefix + "microbatch_mean.microbatches", indices.size());
  const auto tokens = load_counts(state, prefix + "microbatch_mean.tokens", indices.size());
  const auto& sums = state.get<double>(prefix + "microbatch_mean.sums", indices.size() * experts_);
  if (!std::all_of(sums.begin(), sums.end(), [](double v) { return std::isfinite(v); })) {
    throw std::invalid_argument("state: entry \"" + prefix +
                                "microbatch_mean.sums\" is not finite");
  }
  ranks_.clear();
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const auto sum = std::span(sums).subspan(i * experts_, experts_);
    ranks_[indices[i]] = {microbatches[i], tokens[i], {sum.begin(), sum.end()}};
  }
}

}  // namespace ballast
