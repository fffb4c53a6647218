#include "core/balancers/windowed_histogram.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/kernels/kernels.h"

namespace ballast {

namespace {

constexpr std::size_t room_behind = 16;  ///< kernels write whole vectors
constexpr std::size_t tokens_at_once = 1024;

}  // namespace

WindowedHistogram::WindowedHistogram(const HistogramRange& range, const Brackets& brackets)
    : range_(range), places_{0}, below_(brackets.low.size()), ends_(below_.size()) {
  for (std::size_t j = 0; j < experts(); ++j) {
    const std::uint32_t first = range.bin(brackets.low[j]), last = range.bin(brackets.high[j]);
    first_bins_.push_back(first);
    places_.push_back(places_.back() + (last - first + 1));
    low_.push_back(range.least_of(first));
    high_.push_back(range.largest_of(last));
  }
  counts_.resize(places_.back());
}

WindowedHistogram WindowedHistogram::fork() const {
  WindowedHistogram empty = *this;
  std::ranges::fill(empty.counts_, 0);
  std::ranges::fill(empty.below_, 0);
  empty.tokens_ = 0;
  return empty;
}

void WindowedHistogram::observe(const ScoreTile& tile) {
  const std::size_t room = std::min(tile.tokens, tokens_at_once) + room_behind;
  values_.resize(std::max(values_.size(), experts() * room));
  for (std::size_t begin = 0; begin < tile.tokens; begin += tokens_at_once) {
    const ScoreTile part = tile.part(begin, std::min(tokens_at_once, tile.tokens - begin));
    for (std::size_t j = 0; j < experts(); ++j) ends_[j] = values_.data() + j * room;
    kernels::active().collect_inside({.tile = part,
                                      .low = low_.data(),
                                      .high = high_.data(),
                                      .below = below_.data(),
                                      .ends = ends_.data()});
    for (std::size_t j = 0; j < experts(); ++j)
      count_inside(j, values_.data() + j * room, ends_[j]);
  }
  tokens_ += static_cast<std::int64_t>(tile.observed_tokens());
}

void WindowedHistogram::count_inside(std::size_t expert, const float* values, const float* end) {
  std::int64_t* const counts = counts_.data() + places_[expert];
  const std::uint32_t first = first_bins_[expert];
  for (; values != end; ++values) ++counts[range_.bin(*values) - first];
}

void WindowedHistogram::merge(WindowedHistogram& other) {
  const auto add = [](std::vector<std::int64_t>& to, const std::vector<std::int64_t>& from) {
    std::ranges::transform(to, from, to.begin(), std::plus());
  };
  add(counts_, other.counts_);
  add(below_, other.below_);
  tokens_ += other.tokens_;
}

std::int64_t WindowedHistogram::inside() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0});
}

std::optional<double> WindowedHistogram::estimate(std::size_t expert, std::size_t top_k) const {
  const QuantileRank rank(tokens_, top_k, experts());
  std::int64_t before = below_[expert];
  if (rank.rank <= before) return std::nullopt;
  for (std::size_t place = places_[expert]; place < places_[expert + 1]; ++place) {
    if (before + counts_[place] >= rank.rank) {
      const std::size_t bin = first_bins_[expert] + (place - places_[expert]);
      return value_in_bin(range_, rank, bin, before, counts_[place]);
    }
    before += counts_[place];
  }
  return std::nullopt;
}

}  // namespace ballast
