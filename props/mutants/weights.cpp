#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/arithmetic/functions.h"
#include "props/mutants/altered.h"
#include "props/mutants/families.h"

namespace ballast::props {

namespace {

struct BiasedWeights : ChangesRouting {
  explicit BiasedWeights(bool in_training_only) : in_training_only_(in_training_only) {}
  void change(const Forward& forward, Routing<float>& routing) override {
    if (in_training_only_ && forward.mode != Mode::train) return;
    const auto biases = layer(forward.layer).biases();
    for (std::size_t t = 0; t < routing.weights.rows(); ++t) {
      for (std::size_t slot = 0; slot < routing.weights.cols(); ++slot) {
        routing.weights(t, slot) +=
            biases[static_cast<std::size_t>(routing.selection.indices(t, slot))];
      }
    }
  }

 private:
  bool in_training_only_;
};

/// Makes the weights anew: gates, divided by something, times a scale.
struct OwnWeights : ChangesRouting {
  virtual float gate(float score, float) { return score; }
  virtual float denominator(float sum, std::span<const float> /*all gates*/) {
    return sum + 1e-20f;
  }
  virtual bool renormalizes() { return model().renormalize; }
  void change(const Forward& forward, Routing<float>& routing) override {
    const auto& gates = routing.gates.rows() > 0 ? routing.gates : routing.scores;
    const auto biases = layer(forward.layer).biases();
    for (std::size_t t = 0; t < routing.weights.rows(); ++t) {
      float sum = 0.0f;
      for (std::size_t slot = 0; slot < routing.weights.cols(); ++slot) {
        const auto j = static_cast<std::size_t>(routing.selection.indices(t, slot));
        routing.weights(t, slot) = gate(gates(t, j), biases[j]);
        sum += routing.weights(t, slot);
      }
      for (float& p : routing.weights.row(t)) {
        if (renormalizes()) p /= denominator(sum, gates.row(t));
        p *= static_cast<float>(model().routed_scale);
      }
    }
  }
};

struct BackFromBiasedScores : OwnWeights {
  float gate(float score, float bias) override { return (score + bias) - bias; }
};
struct GatesInBf16 : OwnWeights {
  float gate(float score, float) override { return in_bf16(score); }
};
struct SoftmaxOfGates : OwnWeights {
  float gate(float score, float) override { return arithmetic::exp(score); }
};
struct NeverRenormalised : OwnWeights {
  bool renormalizes() override { return false; }
};
struct AlwaysRenormalised : OwnWeights {
  bool renormalizes() override { return true; }
};
struct UnguardedDenominator : OwnWeights {
  float denominator(float sum, std::span<const float>) override { return sum; }
};
struct GuardTooLarge : OwnWeights {
  float denominator(float sum, std::span<const float>) override { return sum + 1e-6f; }
};
struct OverAllExperts : OwnWeights {
  float denominator(float, std::span<const float> gates) override {
    return std::accumulate(gates.begin(), gates.end(), 1e-20f);
  }
};
struct SingleExpertNotRenormalised : OwnWeights {
  bool renormalizes() override { return model().renormalize && model().top_k > 1; }
};

struct WeighsFirst256 : ChangesRouting {
  void change(const Forward&, Routing<float>& routing) override {
    for (std::size_t t = 256; t < routing.weights.rows(); ++t) {
      std::ranges::fill(routing.weights.row(t), 0.0f);
    }
  }
};

struct ScaledTwice : ChangesRouting {
  void change(const Forward&, Routing<float>& routing) override {
    for (float& p : routing.weights.values()) p *= static_cast<float>(model().routed_scale);
  }
};
struct NeverScaled : ChangesRouting {
  void change(const Forward&, Routing<float>& routing) override {
    for (float& p : routing.weights.values()) p /= static_cast<float>(model().routed_scale);
  }
};

struct InOtherOrder : ChangesRouting {
  void change(const Forward&, Routing<float>& routing) override {
    for (std::size_t t = 0; t < routing.weights.rows(); ++t) {
      std::ranges::reverse(routing.weights.row(t));
    }
  }
};

struct WrongInOneShape : ChangesRouting {
  void change(const Forward&, Routing<float>& routing) override {
    if (model().routed_experts != 128 || model().top_k != 8) return;
    for (std::size_t t = 0; t < routing.weights.rows(); ++t) routing.weights(t, 3) *= 1.5f;
  }
};

struct AllAlike : ChangesRouting {
  void change(const Forward&, Routing<float>& routing) override {
    for (std::size_t t = 0; t < routing.weights.rows(); ++t) {
      const auto row = routing.weights.row(t);
      const float sum = std::accumulate(row.begin(), row.end(), 0.0f);
      std::ranges::fill(row, sum / static_cast<float>(row.size()));
    }
  }
};

/// softmax without taking the maximum away first: infinity / infinity for large logits.
struct OverflowingSoftmax : ChangesRouting {
  void change(const Forward& forward, Routing<float>& routing) override {
    if (model().score == ScoreFunction::sigmoid) return;
    for (std::size_t t = 0; t < routing.weights.rows(); ++t) {
      const float largest = std::ranges::max(forward.logits.row(t));
      if (largest > 88.0f) std::ranges::fill(routing.weights.row(t), NAN);
    }
  }
};

/// An assignment beyond an expert's capacity, 5/4 of a fair share, has no weight.
struct DropsBeyondCapacity : ChangesRouting {
  void change(const Forward&, Routing<float>& routing) override {
    const auto& indices = routing.selection.indices;
    const std::size_t experts = model().routed_experts;
    const std::size_t assignments = indices.rows() * indices.cols();
    const std::size_t capacity = (5 * assignments + 4 * experts - 1) / (4 * experts);
    std::vector<std::size_t> loads(experts);
    for (std::size_t t = 0; t < indices.rows(); ++t) {
      for (std::size_t slot = 0; slot < indices.cols(); ++slot) {
        const bool full = ++loads[static_cast<std::size_t>(indices(t, slot))] > capacity;
        if (full) routing.weights(t, slot) = 0.0f;
      }
    }
  }
};

/// A buffer that is reused: the last row of a batch keeps the weights of the batch before.
struct LastRowIsStale : ChangesRouting {
  void change(const Forward&, Routing<float>& routing) override {
    if (routing.weights.rows() == 0) return;
    const auto row = routing.weights.row(routing.weights.rows() - 1);
    std::vector<float> now(row.begin(), row.end());
    if (before_.size() == now.size()) std::ranges::copy(before_, row.begin());
    before_ = std::move(now);
  }

 private:
  std::vector<float> before_;
};

}  // namespace

std::vector<Mutant> weights_mutants() {
  return {
      mutant<BiasedWeights>("biased-weights", "weights.bias-free", {"M67"},
                            "Adds the bias to the weight.", false),
      mutant<BiasedWeights>("biased-weights-in-training", "weights.in-training", {"M67", "M70"},
                            "Adds the bias to the weight in training only.", true),
      mutant<BackFromBiasedScores>("back-from-biased-scores", "weights.tiny-scores",
                                   {"M71", "algorithms 6"},
                                   "Recovers the raw score as (score + bias) - bias."),
      mutant<GatesInBf16>("gates-in-bf16", "weights.value", {"M75", "M150"},
                          "Rounds scores to bf16 before it makes weights of them."),
      mutant<SoftmaxOfGates>("softmax-of-scores", "weights.value", {"M88"},
                             "Takes scores for logits and exponentiates them once more."),
      mutant<NeverRenormalised>("never-renormalised", "weights.sum", {"algorithms 1.2", "M105"},
                                "Never divides weights by their sum."),
      mutant<AlwaysRenormalised>("always-renormalised", "weights.value", {"M87", "M105"},
                                 "Divides weights by their sum where nobody asked for it."),
      mutant<UnguardedDenominator>("unguarded-denominator", "weights.zero-scores",
                                   {"algorithms 6", "M51"},
                                   "Divides by the sum even if that is zero."),
      mutant<GuardTooLarge>("guard-too-large", "weights.tiny-scores", {"algorithms 6"},
                            "Adds 1e-6 to the denominator, which small scores feel."),
      mutant<OverAllExperts>("renormalised-over-all", "weights.sum", {"M101", "M102"},
                             "Divides by the sum over all experts instead of the chosen ones."),
      mutant<SingleExpertNotRenormalised>("top-1-not-renormalised", "weights.top-1",
                                          {"algorithms 1.2", "M87"},
                                          "Does not divide by the sum when top_k is 1."),
      mutant<WeighsFirst256>("weighs-first-256", "weights.every-token", {"M82"},
                             "Gives tokens beyond the 256th weights of zero."),
      mutant<ScaledTwice>("scaled-twice", "weights.scale", {"M94", "M96"},
                          "Applies routed_scale twice."),
      mutant<NeverScaled>("never-scaled", "weights.scale", {"M96", "M99"},
                          "Ignores routed_scale."),
      mutant<InOtherOrder>("weights-in-other-order", "weights.value", {"M76"},
                           "Answers the weights of a token in reverse order."),
      mutant<WrongInOneShape>("weights-wrong-in-one-shape", "weights.tile-shapes", {"M69"},
                              "Weighs the fourth choice half as much again for 128 experts, top 8."),
      mutant<AllAlike>("weights-all-alike", "weights.value", {"M87", "M142"},
                       "Weighs all chosen experts of a token alike."),
      mutant<OverflowingSoftmax>("softmax-overflows", "weights.value", {"M106"},
                                 "Exponentiates logits without taking their maximum away."),
      mutant<DropsBeyondCapacity>("drops-beyond-capacity", "weights.value", {"M46", "M48"},
                                  "Gives assignments beyond an expert's capacity no weight."),
      mutant<LastRowIsStale>("last-row-is-stale", "weights.value", {"M82", "M139"},
                             "Answers the last token with weights of the batch before."),
  };
}

}  // namespace ballast::props
