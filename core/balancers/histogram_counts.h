#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/balancers/clamped_counts.h"
#include "core/balancers/histogram.h"
#include "core/kernels/score_tile.h"

namespace ballast {

/// Counts required biases in the bins of a range, for each expert. Counts of parts of a batch add
/// up, in any order, to the counts of the whole. Memory: 2 bytes an expert and bin once there is
/// something to count, and 8 more from the 65,536th token on.
class HistogramCounts {
 public:
  HistogramCounts(std::size_t experts, const HistogramRange& range);
  /// An empty one with the same range.
  HistogramCounts fork() const { return {experts_, range_}; }

  /// A tile with scores or with logits.
  void observe(const ScoreTile& tile);
  /// Adds the counts of another one with the same range, which may be left empty.
  void merge(HistogramCounts& other);
  /// Adds counts `[experts, bins]` of `tokens` tokens, of which each expert's sum up to `tokens`.
  void add(std::span<const std::int64_t> counts, std::int64_t tokens);

  const HistogramRange& range() const { return range_; }
  /// Tokens counted.
  std::int64_t tokens() const { return tokens_; }
  /// Observations outside the range, which were counted in the bins at its ends.
  ClampedCounts clamped() const { return clamped_; }
  /// Of one expert, `[bins]`.
  std::vector<std::int64_t> counts(std::size_t expert) const;

  /// bhat `[experts]` by histogram_quantile, from at least one token; 0 < top_k < experts.
  std::vector<double> estimate(std::size_t top_k) const;

 private:
  void empty_near();

  std::size_t experts_;
  HistogramRange range_;
  std::size_t near_stride_;
  std::vector<std::uint16_t>
      near_;  ///< of the last tokens: small, so that counting stays in the caches
  std::size_t near_tokens_ = 0;
  std::vector<std::int64_t> counts_;  ///< of all others, `[experts, bins]`, or none
  std::int64_t tokens_ = 0;
  ClampedCounts clamped_;
};

}  // namespace ballast
