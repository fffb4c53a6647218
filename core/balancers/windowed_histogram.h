#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/balancers/bracketed_quantile.h"
#include "core/balancers/histogram.h"
#include "core/kernels/score_tile.h"

namespace ballast {

/// The part of a histogram of required biases that decides its quantiles: for each expert the bins
/// of a window are counted one by one, and all those below it together. Few values are inside, so
/// this takes less time than HistogramCounts, and it comes to the same estimates, to the bit, for
/// every expert whose window has the bin that decides. Parts of a batch add up, in any order, to
/// the whole. Memory: 8 bytes for each bin of a window.
class WindowedHistogram {
 public:
  /// Each window has the bins that an expert's bracket has a part in.
  WindowedHistogram(const HistogramRange& range, const Brackets& brackets);
  /// An empty one with the same windows.
  WindowedHistogram fork() const;

  /// A tile with scores or with logits. Linear in tokens * experts; a value inside takes some ten
  /// times as long as one outside.
  void observe(const ScoreTile& tile);
  /// Adds what another one with the same windows has observed.
  void merge(WindowedHistogram& other);

  const HistogramRange& range() const { return range_; }
  std::int64_t tokens() const { return tokens_; }
  /// Values in all windows.
  std::int64_t inside() const;
  /// bhat of one expert as histogram_quantile has it from all bins; nothing if the bin that decides
  /// is not in the window. At least one token; 0 < top_k < experts.
  std::optional<double> estimate(std::size_t expert, std::size_t top_k) const;

 private:
  std::size_t experts() const { return below_.size(); }
  void count_inside(std::size_t expert, const float* values, const float* end);

  HistogramRange range_;
  std::vector<float> low_, high_;          ///< the least and the largest value of each window
  std::vector<std::uint32_t> first_bins_;  ///< of the windows
  std::vector<std::size_t> places_;        ///< of these in the counts; one more at the end
  std::vector<std::int64_t> counts_, below_;
  std::vector<float> values_;  ///< of a tile, those inside; room for each expert's
  std::vector<float*> ends_;
  std::int64_t tokens_ = 0;
};

}  // namespace ballast
