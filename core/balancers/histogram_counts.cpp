#include "core/balancers/histogram_counts.h"

#include <algorithm>
#include <limits>

#include "core/kernels/kernels.h"

namespace ballast {

namespace {

/// A count of every token fits into the near counters.
constexpr std::size_t near_tokens_max = std::numeric_limits<std::uint16_t>::max();

std::size_t observed_tokens(const ScoreTile& tile, std::size_t first, std::size_t count) {
  if (tile.observed == nullptr) return count;
  const std::uint8_t* const begin = tile.observed + first;
  return count - static_cast<std::size_t>(std::count(begin, begin + count, std::uint8_t{0}));
}

}  // namespace

HistogramCounts::HistogramCounts(std::size_t experts, const HistogramRange& range)
    : experts_(experts),
      range_(range),
      near_stride_(range.bins() + 8) {}  // so that not all begin in the same set of a cache

void HistogramCounts::observe(const ScoreTile& tile) {
  near_.resize(experts_ * near_stride_);
  for (std::size_t first = 0; first < tile.tokens; first += near_tokens_max) {
    const std::size_t count = std::min(near_tokens_max, tile.tokens - first);
    if (near_tokens_ + count > near_tokens_max) empty_near();
    kernels::CountBins rows{.tokens = count,
                            .experts = experts_,
                            .scores = tile.scores + first * tile.stride,
                            .scores_stride = tile.stride,
                            .cutoffs = tile.cutoffs + first,
                            .observed = tile.observed == nullptr ? nullptr : tile.observed + first,
                            .low = range_.low(),
                            .high = range_.high(),
                            .width = range_.width(),
                            .bins = range_.bins(),
                            .counts = near_.data(),
                            .counts_stride = near_stride_};
    kernels::active().count_bins(rows);
    near_tokens_ += count;
    tokens_ += static_cast<std::int64_t>(observed_tokens(tile, first, count));
  }
}

void HistogramCounts::empty_near() {
  counts_.resize(experts_ * range_.bins());
  if (near_tokens_ == 0) return;
  for (std::size_t j = 0; j < experts_; ++j) {
    std::uint16_t* const near = near_.data() + j * near_stride_;
    std::int64_t* const counts = counts_.data() + j * range_.bins();
    for (std::size_t bin = 0; bin < range_.bins(); ++bin) counts[bin] += near[bin];
  }
  std::ranges::fill(near_, std::uint16_t{0});
  near_tokens_ = 0;
}

void HistogramCounts::merge(HistogramCounts& other) {
  if (tokens_ == 0) {
    std::swap(*this, other);
    return;
  }
  empty_near();
  other.empty_near();
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  tokens_ += other.tokens_;
}

std::span<const std::int64_t> HistogramCounts::counts(std::size_t expert) {
  empty_near();
  return std::span(counts_).subspan(expert * range_.bins(), range_.bins());
}

std::vector<double> HistogramCounts::estimate(std::size_t top_k) {
  std::vector<double> estimate(experts_);
  for (std::size_t j = 0; j < experts_; ++j) {
    estimate[j] = histogram_quantile(range_, counts(j), tokens_, top_k, experts_);
  }
  return estimate;
}

}  // namespace ballast
