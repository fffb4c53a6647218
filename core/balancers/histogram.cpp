#include "core/balancers/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

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

double histogram_quantile(const HistogramRange& range, std::span<const std::int64_t> counts,
                          std::int64_t total, std::size_t top_k, std::size_t experts) {
  const auto k = static_cast<std::int64_t>(top_k);
  const auto n = static_cast<std::int64_t>(experts);
  const std::int64_t rank = (total * k + n - 1) / n;
  std::size_t bin = 0;
  std::int64_t before = 0;
  while (before + counts[bin] < rank) before += counts[bin++];

  const double q = static_cast<double>(total * k) / static_cast<double>(n);
  const double fraction = (q - static_cast<double>(before)) / static_cast<double>(counts[bin]);
  const double position = static_cast<double>(bin) + std::clamp(fraction, 0.0, 1.0);
  return static_cast<double>(range.low()) + position * range.width();
}

}  // namespace ballast
