#include "sim/faults/balancer_fault.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/assignment/chosen_experts.h"
#include "core/balancers/load_bias_balancer.h"

namespace ballast::sim {
namespace {

/// The nearest bf16 value, ties to even.
float to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
  return std::isfinite(x) ? std::bit_cast<float>(rounded & 0xffff0000) : x;
}

bool can_count_on(std::int64_t count) {
  const auto next = static_cast<float>(count + 1);
  return to_bf16(next) == next;
}

/// The assignments without those that a bf16 counter, which stands at `counts`, does not move for.
Matrix<std::int32_t> counted_in_bf16(MatrixView<const std::int32_t> indices,
                                     std::span<const std::uint8_t> valid,
                                     std::vector<std::int64_t> counts) {
  Matrix<std::int32_t> out(indices.rows(), indices.cols(), no_expert);
  for (std::size_t t = 0; t < indices.rows(); ++t) {
    if (!valid.empty() && valid[t] == 0) continue;
    for (std::size_t slot = 0; slot < indices.cols(); ++slot) {
      const std::int32_t expert = indices(t, slot);
      if (expert == no_expert) continue;
      std::int64_t& count = counts.at(static_cast<std::size_t>(expert));
      if (!can_count_on(count)) continue;
      ++count;
      out(t, slot) = expert;
    }
  }
  return out;
}

class FaultyBalancer : public Balancer {
 public:
  FaultyBalancer(std::unique_ptr<Balancer> balancer, BalancerFault fault)
      : balancer_(std::move(balancer)),
        counting_(dynamic_cast<LoadBiasBalancer*>(balancer_.get())),
        fault_(fault) {
    if (fault == BalancerFault::bf16_counts && counting_ == nullptr) {
      throw std::invalid_argument("fault bf16_counts: the balancer counts no loads");
    }
  }

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
    if (fault_ == BalancerFault::bf16_counts) {
      const auto pending = counting_->pending_counts();
      const std::vector<std::int64_t> counts(pending.begin(), pending.end());
      indices_ = counted_in_bf16(batch.indices, batch.valid, counts);
      kept_ = counted_in_bf16(batch.kept, batch.valid, counts);
      out.indices = indices_;
      out.kept = kept_;
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
  LoadBiasBalancer* counting_;  ///< the same one, if it counts loads
  BalancerFault fault_;

  // What spoilt() shows the balancer in place of what it was given.
  std::vector<std::uint8_t> all_;
  Matrix<float> biased_;
  Matrix<std::int32_t> indices_, kept_;
};

}  // namespace

std::unique_ptr<Balancer> with_fault(std::unique_ptr<Balancer> balancer, BalancerFault fault) {
  if (fault == BalancerFault::none || fault == BalancerFault::evaluation_leak) return balancer;
  return std::make_unique<FaultyBalancer>(std::move(balancer), fault);
}

}  // namespace ballast::sim
