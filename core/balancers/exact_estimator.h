#pragma once

#include "core/balancers/quantile_estimator.h"

namespace ballast {

/// bhat_j = the (floor(q) + 1)-th smallest r_ij over all m pending tokens, q = m k / E in integers
/// (Kimi K3 report, Eq. 14: the (q + 1)-th largest margin, with its sign turned). It keeps
/// #{i : r_ij < bhat_j} <= q < #{i : r_ij <= bhat_j}, for any q, fractional ones and q < 1
/// included.
///
/// An order statistic of the pooled step: how the tokens are split over micro-batches and ranks,
/// and their order, change no bit. Keeps 4 bytes per token and expert; estimating takes linear time
/// on average.
class ExactEstimator final : public QuantileEstimator {
 public:
  ExactEstimator(std::size_t experts, std::size_t top_k) : experts_(experts), top_k_(top_k) {}

  void observe(const ObservedForward& forward) override;
  std::optional<std::vector<double>> estimate(std::span<const float> biases) const override;
  void clear() override { required_.clear(); }
  std::int64_t tokens() const override;
  void save(StateDict& state, const std::string& prefix) const override;
  void load(const StateDict& state, const std::string& prefix,
            std::span<const float> biases) override;

 private:
  std::size_t experts_;
  std::size_t top_k_;
  std::vector<float> required_;  ///< r, `[tokens, experts]`
};

}  // namespace ballast
