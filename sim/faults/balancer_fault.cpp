#include "sim/faults/balancer_fault.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace ballast::sim {
namespace {

/// The nearest bf16 value, ties to even.
float to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
  return std::isfinite(x) ? std::bit_cast<float>(rounded & 0xffff0000) : x;
}

class FaultyBalancer : public Balancer {
 public:
  FaultyBalancer(std::unique_ptr<Balancer> balancer, BalancerFault fault)
      : balancer_(std::move(balancer)), fault_(fault) {}

  std::span<const float> biases() const override { return balancer_->biases(); }
  void set_biases(std::span<const float> biases) override { balancer_->set_biases(biases); }

  void observe(const RoutedBatch& batch) override {
    spoil_update([&] { balancer_->observe(spoilt(batch)); });
  }
  void end_step(bool applied) override {
    spoil_update([&] { balancer_->end_step(applied); });
  }
  void save(StateDict& state, const std::string& prefix) const override {
    balancer_->save(state, prefix);
  }
  void load(const StateDict& state, const std::string& prefix) override {
    balancer_->load(state, prefix);
    if (fault_ == BalancerFault::lost_at_restart) {
      set_biases(std::vector<float>(biases().size(), 0.0f));
    }
  }

 private:
  RoutedBatch spoilt(const RoutedBatch& batch) {
    RoutedBatch out = batch;
    if (fault_ == BalancerFault::padding_counted) {
      all_.assign(batch.scores.rows(), 1);
      for (std::size_t t = 0; t < all_.size(); ++t) {
        all_[t] =
            std::ranges::all_of(batch.scores.row(t), [](float s) { return std::isfinite(s); });
      }
      out.valid = all_;
    }
    if (fault_ == BalancerFault::biased_margin) {
      biased_ = Matrix<float>(batch.scores.rows(), batch.scores.cols());
      for (std::size_t t = 0; t < biased_.rows(); ++t) {
        for (std::size_t j = 0; j < biased_.cols(); ++j) {
          biased_(t, j) = batch.scores(t, j) + biases()[j];
        }
      }
      out.scores = biased_;
    }
    return out;
  }

  /// Updates, and when that changed the biases spoils them.
  template <class Update>
  void spoil_update(Update update) {
    const std::vector<float> before(biases().begin(), biases().end());
    update();
    if (std::ranges::equal(before, biases())) return;
    std::vector<float> after(biases().begin(), biases().end());
    for (std::size_t j = 0; j < after.size(); ++j) {
      if (fault_ == BalancerFault::increment) after[j] += before[j];
      if (fault_ == BalancerFault::bf16_biases) after[j] = to_bf16(after[j]);
    }
    if (!std::ranges::equal(after, biases())) set_biases(after);
  }

  std::unique_ptr<Balancer> balancer_;
  BalancerFault fault_;
  std::vector<std::uint8_t> all_;
  Matrix<float> biased_;
};

}  // namespace

std::unique_ptr<Balancer> with_fault(std::unique_ptr<Balancer> balancer, BalancerFault fault) {
  if (fault == BalancerFault::none || fault == BalancerFault::evaluation_leak) return balancer;
  return std::make_unique<FaultyBalancer>(std::move(balancer), fault);
}

}  // namespace ballast::sim
