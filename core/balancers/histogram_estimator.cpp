#include "core/balancers/histogram_estimator.h"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

namespace ballast {

namespace {

/// Experts whose histograms are filled together: as many as stay in the second-level cache at 1000
/// bins.
constexpr std::size_t experts_at_once = 16;

/// The sum of the counts, or -1 when one is negative or the sum times `factor` overflows.
std::int64_t checked_total(std::span<const std::int64_t> counts, std::int64_t factor) {
  const std::int64_t limit = std::numeric_limits<std::int64_t>::max() / factor - factor;
  std::int64_t total = 0;
  for (const std::int64_t count : counts) {
    if (count < 0 || count > limit - total) return -1;
    total += count;
  }
  return total;
}

}  // namespace

HistogramEstimator::HistogramEstimator(std::size_t experts, std::size_t top_k, std::size_t bins)
    : experts_(experts), top_k_(top_k), bins_(bins), counts_(experts * bins) {}

void HistogramEstimator::observe(const RequiredBiases& batch) {
  const HistogramRange range(batch.biases, bins_);
  check_range(range);
  range_ = range;
  add_counts(batch.values);
  add_clamped(batch.values.values());
  tokens_ += static_cast<std::int64_t>(batch.values.rows());
}

void HistogramEstimator::check_range(const HistogramRange& range) const {
  if (!range_ || *range_ == range) return;
  throw std::logic_error("quantile histogram: the biases changed while observations were pending");
}

void HistogramEstimator::add_counts(MatrixView<const float> required) {
  const HistogramRange range = *range_;
  const std::size_t bins = bins_;
  std::array<std::uint32_t, experts_at_once> bin;
  for (std::size_t first = 0; first < experts_; first += experts_at_once) {
    const std::size_t count = std::min(experts_at_once, experts_ - first);
    const auto histograms = std::span(counts_).subspan(first * bins, count * bins);
    for (std::size_t i = 0; i < required.rows(); ++i) {
      const auto row = required.row(i).subspan(first, count);
      for (std::size_t j = 0; j < count; ++j) bin[j] = range.bin(row[j]);
      for (std::size_t j = 0; j < count; ++j) ++histograms[j * bins + bin[j]];
    }
  }
}

void HistogramEstimator::add_clamped(std::span<const float> required) {
  for (const float r : required) {
    clamped_.below += r < range_->low() ? 1 : 0;
    clamped_.above += r > range_->high() ? 1 : 0;
  }
}

std::optional<std::vector<double>> HistogramEstimator::estimate(
    std::span<const float> biases) const {
  if (tokens_ == 0) return std::nullopt;
  check_range(HistogramRange(biases, bins_));
  std::vector<double> estimate(experts_);
  for (std::size_t j = 0; j < experts_; ++j) {
    estimate[j] = histogram_quantile(*range_, counts(j), tokens_, top_k_, experts_);
  }
  return estimate;
}

void HistogramEstimator::clear() {
  range_.reset();
  std::fill(counts_.begin(), counts_.end(), 0);
  tokens_ = 0;
}

std::span<const std::int64_t> HistogramEstimator::counts(std::size_t expert) const {
  return std::span(counts_).subspan(expert * bins_, bins_);
}

void HistogramEstimator::save(StateDict& state, const std::string& prefix) const {
  state.put(prefix + "histogram.counts", tokens_ == 0 ? std::vector<std::int64_t>{} : counts_);
  state.put(prefix + "histogram.clamped",
            std::vector<std::int64_t>{clamped_.below, clamped_.above});
}

void HistogramEstimator::load(const StateDict& state, const std::string& prefix,
                              std::span<const float> biases) {
  const auto refuse = [](const std::string& name, const char* why) {
    throw std::invalid_argument("state: entry \"" + name + "\" " + why);
  };
  const std::string clamped_name = prefix + "histogram.clamped";
  const auto& clamped = state.get<std::int64_t>(clamped_name, 2);
  if (clamped[0] < 0 || clamped[1] < 0) refuse(clamped_name, "has a negative count");

  clear();
  clamped_ = {clamped[0], clamped[1]};
  const std::string name = prefix + "histogram.counts";
  if (state.get<std::int64_t>(name).empty()) return;
  counts_ = state.get<std::int64_t>(name, counts_.size());
  tokens_ = checked_total(counts(0), static_cast<std::int64_t>(experts_));
  if (tokens_ < 1) refuse(name, "has no counts, a negative one, or too many");
  for (std::size_t j = 0; j < experts_; ++j) {
    if (checked_total(counts(j), static_cast<std::int64_t>(experts_)) != tokens_) {
      refuse(name, "has not the same total for every expert");
    }
  }
  range_ = HistogramRange(biases, bins_);
}

}  // namespace ballast
