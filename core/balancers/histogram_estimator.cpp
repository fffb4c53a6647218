#include "core/balancers/histogram_estimator.h"

#include <limits>
#include <stdexcept>

namespace ballast {

namespace {

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
    : experts_(experts), top_k_(top_k), bins_(bins) {}

void HistogramEstimator::observe(const ObservedForward& forward) {
  const HistogramRange range(forward.biases, bins_);
  check_range(range);
  if (!pending_) pending_.emplace(experts_, range);
  pending_->observe(forward.tokens);
}

void HistogramEstimator::check_range(const HistogramRange& range) const {
  if (!pending_ || pending_->range() == range) return;
  throw std::logic_error("quantile histogram: the biases changed while observations were pending");
}

std::optional<std::vector<double>> HistogramEstimator::estimate(
    std::span<const float> biases) const {
  if (!pending_) return std::nullopt;
  check_range(HistogramRange(biases, bins_));
  return pending_->estimate(top_k_);
}

void HistogramEstimator::clear() {
  clamped_before_ = clamped();
  pending_.reset();
}

ClampedCounts HistogramEstimator::clamped() const {
  ClampedCounts clamped = clamped_before_;
  if (pending_) clamped += pending_->clamped();
  return clamped;
}

std::vector<std::int64_t> HistogramEstimator::counts(std::size_t expert) const {
  return pending_ ? pending_->counts(expert) : std::vector<std::int64_t>(bins_);
}

void HistogramEstimator::save(StateDict& state, const std::string& prefix) const {
  std::vector<std::int64_t> all;
  for (std::size_t j = 0; j < experts_ && pending_; ++j) {
    const auto own = counts(j);
    all.insert(all.end(), own.begin(), own.end());
  }
  state.put(prefix + "histogram.counts", all);
  state.put(prefix + "histogram.clamped",
            std::vector<std::int64_t>{clamped().below, clamped().above});
}

void HistogramEstimator::load(const StateDict& state, const std::string& prefix,
                              std::span<const float> biases) {
  const auto refuse = [](const std::string& name, const char* why) {
    throw std::invalid_argument("state: entry \"" + name + "\" " + why);
  };
  const std::string clamped_name = prefix + "histogram.clamped";
  const auto& clamped = state.get<std::int64_t>(clamped_name, 2);
  if (clamped[0] < 0 || clamped[1] < 0) refuse(clamped_name, "has a negative count");

  pending_.reset();
  clamped_before_ = {clamped[0], clamped[1]};
  const std::string name = prefix + "histogram.counts";
  if (state.get<std::int64_t>(name).empty()) return;
  const std::span<const std::int64_t> counts =
      state.get<std::int64_t>(name, experts_ * bins_);
  const auto total = [&](std::size_t j) {
    return checked_total(counts.subspan(j * bins_, bins_), static_cast<std::int64_t>(experts_));
  };
  const std::int64_t tokens = total(0);
  if (tokens < 1) refuse(name, "has no counts, a negative one, or too many");
  for (std::size_t j = 0; j < experts_; ++j) {
    if (total(j) != tokens) refuse(name, "has not the same total for every expert");
  }
  pending_.emplace(experts_, HistogramRange(biases, bins_));
  pending_->add(counts, tokens);
}

}  // namespace ballast
