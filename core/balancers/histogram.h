#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ballast {

/// clamp(floor((r - lo) / w), 0, bins - 1), with a true division, in double. r is not NaN; bins is
/// from 1 to 2^24.
inline std::uint32_t histogram_bin(float r, float low, double width, std::size_t bins) {
  const double position = std::floor((static_cast<double>(r) - static_cast<double>(low)) / width);
  // Clamped before the conversion: an integer need not hold what a double holds.
  const double clamped = std::min(std::max(position, 0.0), static_cast<double>(bins - 1));
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(clamped));
}

/// The interval of required biases that a histogram of `bins` equal bins covers while b is in force
/// (Kimi K3 report, App. D): lo = min b - 1 and hi = max b + 1 in fp32, w = (hi - lo) / bins in
/// double.
///
/// For scores in [0, 1] every r = alpha - s lies in [lo, hi], without allowance: alpha = s' + b'
/// for some expert, and with all of these rounded to fp32, rounding keeps order. Other scores
/// (logits) may leave it; bin() then takes the nearest bin. The bin is computed in double because
/// in fp32, at 1000 bins, r = 0 on the edge of bin 500 falls into bin 499, and cutoff experts
/// without a bias have r = 0.
class HistogramRange {
 public:
  /// Biases that are not finite are passed over: no finite cutoff comes from them. Throws
  /// std::invalid_argument when none is finite, or when they are so large that lo = hi in fp32.
  HistogramRange(std::span<const float> biases, std::size_t bins);

  float low() const { return low_; }
  float high() const { return high_; }
  double width() const { return width_; }  ///< of one bin
  std::size_t bins() const { return bins_; }

  /// histogram_bin in this range.
  std::uint32_t bin(float r) const { return histogram_bin(r, low_, width_, bins_); }
  /// The least and the largest fp32 value that bin() puts into a bin, -infinity and infinity at the
  /// ends of the range; where a bin is too narrow to have a value, those next to it, so that the
  /// least is above the largest.
  float least_of(std::size_t bin) const;
  float largest_of(std::size_t bin) const;

  friend bool operator==(const HistogramRange&, const HistogramRange&) = default;

 private:
  float low_;
  float high_;
  double width_;
  std::size_t bins_;
};

/// The rank of the observation that decides: ceil(q) with q = total k / E. The rank is an integer
/// computation. `total` >= 0; 0 < top_k < experts.
struct QuantileRank {
  QuantileRank(std::int64_t total, std::size_t top_k, std::size_t experts);
  std::int64_t rank;
  double q;
};

/// bhat = lo + (bin + clip((q - c) / h, 0, 1)) w, from the bin that has the rank, the number c of
/// observations in the bins before it, and its own, h > 0. In double.
double value_in_bin(const HistogramRange& range, const QuantileRank& rank, std::size_t bin,
                    std::int64_t before, std::int64_t own);

/// The K3 estimate of an expert from its counts, `[bins]`, at least one of them positive (App. D),
/// with q = total k / E:
///     bin* = the first bin whose cumulative count >= ceil(q), c = the cumulative count before it,
///     h = its own
/// and bhat by value_in_bin. |bhat - r_(ceil q)| <= w for observations inside the range, up to
/// rounding. `total` is the sum of the counts; 0 < top_k < experts.
double histogram_quantile(const HistogramRange& range, std::span<const std::int64_t> counts,
                          std::int64_t total, std::size_t top_k, std::size_t experts);

}  // namespace ballast
