#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "props/mutants/altered.h"
#include "props/mutants/families.h"

namespace ballast::props {

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

struct FirstExpertForNaN : ChangesRouting {
  void change(const Forward&, Routing<float>& routing) override {
    for (std::size_t t = 0; t < routing.scores.rows(); ++t) {
      if (routing.finite[t] == 0) std::ranges::fill(routing.selection.indices.row(t), 0);
    }
  }
};

class NoExpertForNaN final : public Interferes {
  Answer open(const Open& open) override {
    none_ = static_cast<std::int64_t>(open.model.routed_experts);
    return subject().open(open);
  }
  Answer ask(const Request& request) override {
    Answer answer = subject().ask(request);
    const auto* forward = std::get_if<Forward>(&request);
    auto* routed = std::get_if<Routed>(&answer);
    if (forward == nullptr || routed == nullptr) return answer;
    for (std::size_t t = 0; t < forward->logits.rows(); ++t) {
      const bool all_nan =
          std::ranges::all_of(forward->logits.row(t), [](float z) { return std::isnan(z); });
      if (all_nan) std::ranges::fill(routed->indices[t], none_);
    }
    return answer;
  }

  std::int64_t none_ = 0;
};

/// Another number of experts than it was opened with.
struct AlwaysTwo : BuiltInSubject {
  Routing<float> route(const Forward& forward) override {
    RouterSettings settings = router().settings();
    settings.top_k = std::min<std::size_t>(2, settings.routed_experts);
    return Router<float>(settings).route(forward.logits, layer(forward.layer).biases());
  }
};

/// Gives ties to the higher index, in every forward or in every other one.
struct HigherIndexFirst : BuiltInSubject {
  explicit HigherIndexFirst(bool always) : always_(always) {}
  Routing<float> route(const Forward& forward) override {
    odd_ = !odd_;
    if (!always_ && odd_) return BuiltInSubject::route(forward);
    const auto biases = layer(forward.layer).biases();
    const std::vector<float> reversed(biases.rbegin(), biases.rend());
    Matrix<float> logits = forward.logits;
    for (std::size_t t = 0; t < logits.rows(); ++t) std::ranges::reverse(logits.row(t));
    auto routing = router().route(std::move(logits), reversed);
    for (auto& j : routing.selection.indices.values()) {
      j = static_cast<std::int32_t>(model().routed_experts) - 1 - j;
    }
    return routing;
  }

 private:
  bool always_;
  bool odd_ = false;
};

struct OrdersByIndex : ChangesRouting {
  void change(const Forward&, Routing<float>& routing) override {
    for (std::size_t t = 0; t < routing.selection.indices.rows(); ++t) {
      std::ranges::sort(routing.selection.indices.row(t));
    }
    weigh_anew(routing, model());
  }
};

struct BiasInBf16 : ChangesBiases {
  void change(const Forward&, std::vector<float>& biases) override {
    std::ranges::transform(biases, biases.begin(), in_bf16);
  }
};

struct LogitsInBf16 : ChangesInputs {
  void change(const Forward&, Matrix<float>& logits, std::vector<float>&) override {
    std::ranges::transform(logits.values(), logits.values().begin(), in_bf16);
  }
};

/// Chooses by other values than score + bias.
struct ChoosesBy : ChangesRouting {
  virtual float value(float score, float bias) = 0;
  void change(const Forward& forward, Routing<float>& routing) override {
    const auto biases = layer(forward.layer).biases();
    Matrix<float> values = routing.scores;
    for (std::size_t t = 0; t < values.rows(); ++t) {
      for (std::size_t j = 0; j < values.cols(); ++j) values(t, j) = value(values(t, j), biases[j]);
    }
    const std::vector<float> zeros(biases.size());
    routing.selection = select_top_k<float>(values, zeros, model().top_k);
    weigh_anew(routing, model());
  }
};
struct SumInBf16 : ChoosesBy {
  float value(float score, float bias) override { return in_bf16(score + bias); }
};
struct BiasAsFactor : ChoosesBy {
  float value(float score, float bias) override { return score * (1.0f + bias); }
};
struct BiasIsBounded : ChoosesBy {
  float value(float score, float bias) override { return score + std::clamp(bias, -4.0f, 4.0f); }
};
struct NegativeSumsAreZero : ChoosesBy {
  float value(float score, float bias) override { return std::max(0.0f, score + bias); }
};

/// The bias is added to the logit, before the score function.
struct BiasInLogitSpace : ChangesInputs {
  void change(const Forward&, Matrix<float>& logits, std::vector<float>& biases) override {
    for (std::size_t t = 0; t < logits.rows(); ++t) {
      for (std::size_t j = 0; j < biases.size(); ++j) logits(t, j) += biases[j];
    }
    std::ranges::fill(biases, 0.0f);
  }
};

struct MinusZeroBelowZero : ChangesInputs {
  void change(const Forward&, Matrix<float>& logits, std::vector<float>&) override {
    for (float& z : logits.values()) {
      if (z == 0.0f && std::signbit(z)) z = -std::numeric_limits<float>::denorm_min();
    }
  }
};

struct SubtractsBias : ChangesBiases {
  void change(const Forward&, std::vector<float>& biases) override {
    for (float& b : biases) b = -b;
  }
};

struct SubtractsBiasInTraining : ChangesBiases {
  void change(const Forward& forward, std::vector<float>& biases) override {
    if (forward.mode != Mode::train) return;
    for (float& b : biases) b = -b;
  }
};

/// A kernel for one shape chooses the best expert last.
struct WrongInOneShape : ChangesRouting {
  void change(const Forward&, Routing<float>& routing) override {
    if (model().routed_experts != 128 || model().top_k != 8) return;
    for (std::size_t t = 0; t < routing.weights.rows(); ++t) {
      std::swap(routing.selection.indices(t, 0), routing.selection.indices(t, 7));
    }
    weigh_anew(routing, model());
  }
};

/// Looks at the first experts only.
struct ScansFirst : ChangesInputs {
  virtual std::size_t limit() = 0;
  void change(const Forward&, Matrix<float>& logits, std::vector<float>&) override {
    for (std::size_t t = 0; t < logits.rows(); ++t) {
      for (std::size_t j = limit(); j < logits.cols(); ++j) logits(t, j) = -infinity;
    }
  }
};
struct ScansFirst256 : ScansFirst {
  std::size_t limit() override { return 256; }
};
struct ScansAllButLast : ScansFirst {
  std::size_t limit() override { return std::max(model().top_k, model().routed_experts - 1); }
};
struct TakesTopKForExperts : ScansFirst {
  std::size_t limit() override { return model().top_k + 1; }
};

struct RoutesFirst16 : ChangesRouting {
  void change(const Forward&, Routing<float>& routing) override {
    for (std::size_t t = 16; t < routing.selection.indices.rows(); ++t) {
      std::iota(routing.selection.indices.row(t).begin(), routing.selection.indices.row(t).end(),
                0);
    }
    weigh_anew(routing, model());
  }
};

struct SubtractsMeanOfBatch : ChangesInputs {
  void change(const Forward&, Matrix<float>& logits, std::vector<float>&) override {
    for (std::size_t j = 0; j < logits.cols(); ++j) {
      float mean = 0.0f;
      for (std::size_t t = 0; t < logits.rows(); ++t) mean += logits(t, j);
      for (std::size_t t = 0; t < logits.rows(); ++t) {
        logits(t, j) -= mean / static_cast<float>(logits.rows());
      }
    }
  }
};

struct SingleTokenTakesTheFirst : ChangesRouting {
  void change(const Forward&, Routing<float>& routing) override {
    if (routing.selection.indices.rows() != 1) return;
    std::iota(routing.selection.indices.row(0).begin(), routing.selection.indices.row(0).end(), 0);
    weigh_anew(routing, model());
  }
};

struct OddTokensReadTheirNeighbour : ChangesInputs {
  void change(const Forward&, Matrix<float>& logits, std::vector<float>&) override {
    for (std::size_t t = 1; t < logits.rows(); t += 2) {
      std::ranges::copy(logits.row(t - 1), logits.row(t).begin());
    }
  }
};

struct FavoursExpertZero : ChangesBiases {
  void change(const Forward&, std::vector<float>& biases) override { biases[0] += 0.375f; }
};

struct ClampsLogits : ChangesInputs {
  void change(const Forward&, Matrix<float>& logits, std::vector<float>&) override {
    for (float& z : logits.values()) z = std::clamp(z, -3.0f, 3.0f);
  }
};

struct RanksDisagree : ChangesBiases {
  void change(const Forward& forward, std::vector<float>& biases) override {
    if (forward.rank > 0) biases.back() += 0.5f;
  }
};

/// An expert that is full passes a token on to the next one by index.
struct FullExpertsPassOn : ChangesRouting {
  void change(const Forward&, Routing<float>& routing) override {
    if (model().top_k != 1) return;
    const std::size_t tokens = routing.selection.indices.rows();
    const std::size_t experts = model().routed_experts;
    const std::size_t capacity = (tokens + experts - 1) / experts;
    std::vector<std::size_t> loads(experts);
    for (auto& j : routing.selection.indices.values()) {
      auto expert = static_cast<std::size_t>(j);
      while (loads[expert] >= capacity) expert = (expert + 1) % experts;
      ++loads[expert];
      j = static_cast<std::int32_t>(expert);
    }
    weigh_anew(routing, model());
  }
};

}  // namespace

std::vector<Mutant> selection_mutants() {
  return {
      mutant<FirstExpertForNaN>("first-expert-for-nan", "selection.distinct", {"M78"},
                                "Chooses expert 0 for every slot of a token with NaN scores."),
      mutant<NoExpertForNaN>("no-expert-for-nan", "selection.distinct", {"M79"},
                             "Chooses an expert that does not exist when all scores are NaN."),
      mutant<AlwaysTwo>("always-two", "selection.distinct", {"M85"},
                        "Chooses two experts whatever top_k is."),
      mutant<HigherIndexFirst>("ties-to-higher-index", "selection.top-k", {"M76"},
                               "Gives ties to the higher index.", true),
      mutant<HigherIndexFirst>("ties-at-random", "selection.repeatable", {"M64", "M76"},
                               "Gives ties to the higher index in every other forward.", false),
      mutant<OrdersByIndex>("orders-by-index", "selection.top-k", {"M76"},
                            "Answers the right experts in the order of their indices."),
      mutant<BiasInBf16>("bias-in-bf16", "selection.bias-shift", {"M24", "M73", "M74"},
                         "Routes under biases rounded to bf16."),
      mutant<LogitsInBf16>("logits-in-bf16", "selection.top-k", {"M75", "M150"},
                           "Routes logits rounded to bf16."),
      mutant<SumInBf16>("sum-in-bf16", "selection.top-k", {"M75"},
                        "Compares score + bias after rounding it to bf16."),
      mutant<BiasAsFactor>("bias-as-factor", "selection.bias-shift", {"M18", "M67"},
                           "Multiplies the score by 1 + bias instead of adding."),
      mutant<BiasIsBounded>("bias-is-bounded", "selection.bias-shift", {"algorithms 3.3", "M130"},
                            "Cuts biases to within 4 of zero before it adds them."),
      mutant<NegativeSumsAreZero>("negative-sums-are-zero", "selection.top-k", {"M72"},
                                  "Takes a negative score + bias for zero."),
      mutant<BiasInLogitSpace>("bias-in-logit-space", "selection.top-k",
                               {"algorithms 2.6", "algorithms 6", "M145"},
                               "Adds the bias to the logit instead of the score."),
      mutant<MinusZeroBelowZero>("minus-zero-below-zero", "selection.top-k", {"algorithms 6"},
                                 "Takes -0 for less than +0, so that they do not tie."),
      mutant<SubtractsBias>("subtracts-bias", "selection.monotone", {"M06", "M12"},
                            "Chooses by score - bias."),
      mutant<SubtractsBiasInTraining>("subtracts-bias-in-training", "selection.in-force",
                                      {"M06", "algorithms 2.9"},
                                      "Chooses by score - bias in training only."),
      mutant<WrongInOneShape>("wrong-in-one-shape", "selection.tile-shapes", {"M69"},
                              "Swaps the first and the last choice for 128 experts, top 8."),
      mutant<ScansFirst256>("scans-first-256", "selection.every-expert", {"M81"},
                            "Never chooses an expert above 255."),
      mutant<ScansAllButLast>("scans-all-but-last", "selection.every-expert", {"M81"},
                              "Never chooses the last expert."),
      mutant<TakesTopKForExperts>("top-k-for-experts", "selection.every-expert", {"M84"},
                                  "Looks at the first top_k + 1 experts only."),
      mutant<RoutesFirst16>("routes-first-16", "selection.every-token", {"M82"},
                            "Gives tokens beyond the 16th the first experts."),
      mutant<SubtractsMeanOfBatch>("subtracts-batch-mean", "selection.alone",
                                   {"algorithms 2.2", "M141"},
                                   "Takes the batch's mean logits away, so tokens see each other."),
      mutant<SingleTokenTakesTheFirst>("single-token-path", "selection.alone", {"M84", "M118"},
                                       "Gives a batch of one token the first experts."),
      mutant<FullExpertsPassOn>("full-experts-pass-on", "selection.alone", {"M46", "M48"},
                                "Passes a token on to the next expert when its own is full."),
      mutant<OddTokensReadTheirNeighbour>("reads-the-row-before", "selection.token-order",
                                          {"M82", "M139"},
                                          "Routes every second token by the logits before its own."),
      mutant<FavoursExpertZero>("favours-expert-0", "selection.expert-order", {"M14", "M43"},
                                "Adds a constant to the bias of expert 0."),
      mutant<ClampsLogits>("clamps-logits", "selection.logit-shift", {"algorithms 6", "M106"},
                           "Cuts logits to within 3 of zero."),
      mutant<RanksDisagree>("ranks-disagree", "selection.ranks-agree", {"M70", "M145"},
                            "Has another bias of the last expert on every rank but the first."),
  };
}

}  // namespace ballast::props
