#include "core/balancers/histogram_counts.h"

#include <algorithm>
#include <limits>

#include "core/kernels/kernels.h"

namespace ballast {

namespace {

/// A count of every token fits into the near counters.
constexpr std::size_t near_tokens_max = std::numeric_limits<std::uint16_t>::max();

}  // namespace

HistogramCounts::HistogramCounts(std::size_t experts, const HistogramRange& range)
    : experts_(experts),
      range_(range),
      near_stride_(range.bins() + 8) {}  // so that not all begin in the same set of a cache

void HistogramCounts::observe(const ScoreTile& tile) {
  near_.resize(experts_ * near_stride_);
  for (std::size_t first = 0; first < tile.tokens; first += near_tokens_max) {
    const ScoreTile part = tile.part(first, std::min(near_tokens_max, tile.tokens - first));
    if (near_tokens_ + part.tokens > near_tokens_max) empty_near();
    kernels::CountBins rows{.tile = part,
                            .low = range_.low(),
                            .high = range_.high(),
                            .width = range_.width(),
                            .bins = range_.bins(),
                            .counts = near_.data(),
                            .counts_stride = near_stride_};
    kernels::active().count_bins(rows);
    near_tokens_ += part.tokens;
    tokens_ += static_cast<std::int64_t>(part.observed_tokens());
    clamped_ += {.below = rows.below, .above = rows.above};
  }
}

void HistogramCounts::empty_near() {
  if (near_tokens_ == 0) return;
  counts_.resize(experts_ * range_.bins());
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
  other.empty_near();
  if (!other.counts_.empty()) add(other.counts_, other.tokens_);
  clamped_ += other.clamped_;
}

void HistogramCounts::add(std::span<const std::int64_t> counts, std::int64_t tokens) {
  counts_.resize(experts_ * range_.bins());
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += counts[i];
  tokens_ += tokens;
}

std::vector<std::int64_t> HistogramCounts::counts(std::size_t expert) const {
  std::vector<std::int64_t> sum(range_.bins());
  if (!counts_.empty()) std::copy_n(counts_.data() + expert * sum.size(), sum.size(), sum.data());
  if (near_tokens_ == 0) return sum;
  const std::uint16_t* const near = near_.data() + expert * near_stride_;
  for (std::size_t bin = 0; bin < sum.size(); ++bin) sum[bin] += near[bin];
  return sum;
}

std::vector<double> HistogramCounts::estimate(std::size_t top_k) const {
  std::vector<double> estimate(experts_);
  for (std::size_t j = 0; j < experts_; ++j) {
    estimate[j] = histogram_quantile(range_, counts(j), tokens_, top_k, experts_);
  }
  return estimate;
}

}  // namespace ballast
