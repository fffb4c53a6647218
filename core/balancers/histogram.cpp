#include "core/balancers/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "core/balancers/ordered_bits.h"

namespace ballast {

HistogramRange::HistogramRange(std::span<const float> biases, std::size_t bins) : bins_(bins) {
  float smallest = std::numeric_limits<float>::infinity();
  float largest = -smallest;
  for (const float b : biases) {
    if (!std::isfinite(b)) continue;
    smallest = std::min(smallest, b);
    largest = std::max(largest, b);
  }
  low_ = smallest - 1.0f;
  high_ = largest + 1.0f;
  width_ = (static_cast<double>(high_) - static_cast<double>(low_)) / static_cast<double>(bins);
  if (!(width_ > 0.0)) {
    throw std::invalid_argument("quantile histogram: no range in fp32 for biases from " +
                                std::to_string(smallest) + " to " + std::to_string(largest) +
                                "; they must be finite and small enough for b - 1 < b + 1");
  }
}

float HistogramRange::least_of(std::size_t bin) const {
  if (bin == 0) return -std::numeric_limits<float>::infinity();
  std::uint32_t before = ordered_bits(low_), reaches = ordered_bits(high_);
  while (reaches - before > 1) {
    const std::uint32_t middle = before + (reaches - before) / 2;
    (this->bin(from_ordered_bits(middle)) < bin ? before : reaches) = middle;
  }
  return from_ordered_bits(reaches);
}

float HistogramRange::largest_of(std::size_t bin) const {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  return bin + 1 == bins_ ? infinity : std::nextafter(least_of(bin + 1), -infinity);
}

QuantileRank::QuantileRank(std::int64_t total, std::size_t top_k, std::size_t experts)
    : rank(0), q(0.0) {
  const std::int64_t k = static_cast<std::int64_t>(top_k), n = static_cast<std::int64_t>(experts);
  rank = (total * k + n - 1) / n;
  q = static_cast<double>(total * k) / static_cast<double>(n);
}

double value_in_bin(const HistogramRange& range, const QuantileRank& rank, std::size_t bin,
                    std::int64_t before, std::int64_t own) {
  const double fraction = (rank.q - static_cast<double>(before)) / static_cast<double>(own);
  const double position = static_cast<double>(bin) + std::clamp(fraction, 0.0, 1.0);
  return static_cast<double>(range.low()) + position * range.width();
}

double histogram_quantile(const HistogramRange& range, std::span<const std::int64_t> counts,
                          std::int64_t total, std::size_t top_k, std::size_t experts) {
  const QuantileRank rank(total, top_k, experts);
  std::size_t bin = 0;
  std::int64_t before = 0;
  while (before + counts[bin] < rank.rank) before += counts[bin++];
  return value_in_bin(range, rank, bin, before, counts[bin]);
}

}  // namespace ballast
