#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "props/mutants/altered.h"
#include "props/mutants/families.h"

namespace ballast::props {

namespace {

struct ObservesEvaluations : BuiltInSubject {
  bool observes(const Forward& forward) override { return forward.mode != Mode::recompute; }
};
struct ObservesRecomputations : BuiltInSubject {
  bool observes(const Forward& forward) override { return forward.mode != Mode::eval; }
};
struct CountsEvaluations : BuiltInSubject {
  bool counts(const Forward& forward) override { return forward.mode != Mode::recompute; }
};
struct CountsRecomputations : BuiltInSubject {
  explicit CountsRecomputations(std::size_t from_layer) : from_layer_(from_layer) {}
  bool counts(const Forward& forward) override {
    return forward.mode == Mode::train ||
           (forward.mode == Mode::recompute && forward.layer >= from_layer_);
  }

 private:
  std::size_t from_layer_;
};

/// An evaluation loop that begins with clean counters.
struct EvaluationResetsCounts : BuiltInSubject {
  Routing<float> route(const Forward& forward) override {
    auto& counters = layer(forward.layer).expert_load_counts();
    if (forward.mode == Mode::eval && counters) std::ranges::fill(*counters, 0);
    return BuiltInSubject::route(forward);
  }
};

struct RecomputesInexactly : ChangesRouting {
  void change(const Forward& forward, Routing<float>& routing) override {
    if (forward.mode != Mode::recompute) return;
    for (float& p : routing.weights.values()) p = std::nextafter(p, 2.0f);
  }
};
/// One ulp more for every second expert: near ties flip.
struct RecomputesOtherChoices : ChangesInputs {
  void change(const Forward& forward, Matrix<float>& logits, std::vector<float>&) override {
    if (forward.mode != Mode::recompute) return;
    for (std::size_t t = 0; t < logits.rows(); ++t) {
      for (std::size_t j = 1; j < logits.cols(); j += 2) {
        logits(t, j) = std::nextafter(logits(t, j), std::numeric_limits<float>::infinity());
      }
    }
  }
};
struct RecomputesWithoutWeight : ChangesRouting {
  void change(const Forward& forward, Routing<float>& routing) override {
    if (forward.mode == Mode::recompute) std::ranges::fill(routing.weights.values(), 0.0f);
  }
};

struct ObservesPadding : BuiltInSubject {
  void observe(const Forward& forward, const Routing<float>& routing) override {
    Forward unmasked = forward;
    unmasked.mask = {};
    BuiltInSubject::observe(unmasked, routing);
  }
};
/// Rows of padding take part in what the batch has in common.
struct PaddingShiftsTheBatch : ChangesInputs {
  void change(const Forward& forward, Matrix<float>& logits, std::vector<float>&) override {
    for (std::size_t t = 0; t < logits.rows(); ++t) {
      if (!is_padding(forward, t)) continue;
      for (std::size_t other = 0; other < logits.rows(); ++other) logits(other, 0) += logits(t, 0);
      return;
    }
  }
};

bool is_empty(const Forward& forward) {
  for (std::size_t t = 0; t < forward.logits.rows(); ++t) {
    if (!is_padding(forward, t)) return false;
  }
  return true;
}

struct ForgetsAtEmptyBatches : BuiltInSubject {
  void observe(const Forward& forward, const Routing<float>& routing) override {
    if (is_empty(forward)) {
      set_biases(Biases(layers(), std::vector<float>(model().routed_experts)));
    }
    BuiltInSubject::observe(forward, routing);
  }
};
struct RefusesEmptyBatches : BuiltInSubject {
  Routing<float> route(const Forward& forward) override {
    if (forward.logits.rows() == 0) throw std::invalid_argument("tokens is 0: no power of two");
    return BuiltInSubject::route(forward);
  }
};
/// 0 / 0 when a step saw nothing.
struct EmptyStepsDivideByZero : BuiltInSubject {
  void observe(const Forward& forward, const Routing<float>& routing) override {
    seen_ |= !is_empty(forward);
    BuiltInSubject::observe(forward, routing);
  }
  void end_step(bool applied) override {
    BuiltInSubject::end_step(applied);
    if (!std::exchange(seen_, false) && applied && opened().balancer.kind != BalancerKind::none) {
      set_biases(Biases(layers(), std::vector<float>(model().routed_experts, NAN)));
    }
  }

 private:
  bool seen_ = false;
};
struct CentresAtEveryStep : AddsToSteps {
  void after_step(bool) override {
    set_biases(centred(biases()));
  }
};
struct MovesWhenAsked : BuiltInSubject {
  Biases biases() override {
    Biases all = BuiltInSubject::biases();
    for (auto& row : all) row[0] += 0.25f;
    set_biases(all);
    return all;
  }
};
/// Reduces in place what it was only asked to show.
struct MetricsResetCounts : BuiltInSubject {
  std::map<std::string, double> metrics(const Counts& counts) override {
    for (std::size_t l = 0; l < layers(); ++l) {
      if (auto& counters = layer(l).expert_load_counts()) std::ranges::fill(*counters, 0);
    }
    return BuiltInSubject::metrics(counts);
  }
};

class StepsWhenItRefuses final : public Interferes {
  Answer ask(const Request& request) override {
    Answer answer = subject().ask(request);
    if (std::holds_alternative<Refusal>(answer)) subject().ask(Step{true});
    return answer;
  }
};

}  // namespace

std::vector<Mutant> invisible_mutants() {
  return {
      mutant<ObservesEvaluations>("observes-evaluations", "invisible.evaluation",
                                  {"M01", "M21", "algorithms 2.9"},
                                  "Balances on evaluation forwards too."),
      mutant<ObservesRecomputations>("observes-recomputations", "balance.recompute",
                                     {"M16", "M34", "algorithms 2.9"},
                                     "Balances on recomputed forwards too."),
      mutant<CountsEvaluations>("counts-evaluations", "invisible.evaluation",
                                {"M01", "M21", "M118", "algorithms 2.9"},
                                "Counts evaluation forwards."),
      mutant<CountsRecomputations>("counts-recomputations", "invisible.recomputation",
                                   {"M16", "M97", "algorithms 2.9"}, "Counts recomputed forwards.",
                                   std::size_t{0}),
      mutant<CountsRecomputations>("counts-some-recomputations", "invisible.recomputation",
                                   {"M16", "M34"},
                                   "Counts recomputed forwards of all layers but the first.",
                                   std::size_t{1}),
      mutant<EvaluationResetsCounts>("evaluation-resets-counts", "invisible.evaluation",
                                     {"M37", "M63"},
                                     "Sets a layer's counts to zero when it is evaluated."),
      mutant<RecomputesInexactly>("recomputes-inexactly", "invisible.recomputation-repeats",
                                  {"M91"}, "Gives recomputed weights an ulp more."),
      mutant<RecomputesOtherChoices>("recomputes-other-choices", "invisible.recomputation-repeats",
                                     {"M91", "M145"},
                                     "Recomputes logits with an ulp more for every second expert."),
      mutant<RecomputesWithoutWeight>("recomputes-without-weight",
                                      "invisible.recomputation-repeats", {"M141"},
                                      "Gives the experts of a recomputed forward no weight."),
      mutant<ObservesPadding>("observes-padding", "invisible.padding-content", {"M05", "M22"},
                              "Balances on rows of padding too."),
      mutant<PaddingShiftsTheBatch>("padding-shifts-batch", "invisible.padding", {"M05", "M139"},
                                    "Adds a logit of a row of padding to the tokens."),
      mutant<ForgetsAtEmptyBatches>("forgets-at-empty-batches", "invisible.empty-batch",
                                    {"M51", "M123", "M124"},
                                    "Sets biases to zero when a batch has no valid token."),
      mutant<RefusesEmptyBatches>("refuses-empty-batches", "invisible.empty-batch", {"M124"},
                                  "Refuses a batch of no tokens."),
      mutant<EmptyStepsDivideByZero>("empty-steps-divide-by-zero", "invisible.empty-step",
                                     {"algorithms 6", "M51"},
                                     "Makes biases NaN at a step that saw no token."),
      mutant<CentresAtEveryStep>("centres-at-every-step", "invisible.empty-step",
                                 {"algorithms 6", "M18"},
                                 "Centres biases at steps that saw no token too."),
      mutant<MovesWhenAsked>("moves-when-asked", "invisible.question", {"M27", "M43"},
                             "Moves a bias whenever the biases are read."),
      mutant<MetricsResetCounts>("metrics-reset-counts", "invisible.question", {"M37", "M43"},
                                 "Sets counts to zero when metrics of other counts are asked for."),
      mutant<StepsWhenItRefuses>("steps-when-it-refuses", "invisible.refused-request", {"M148"},
                                 "Closes a step whenever it refuses a request."),
  };
}

}  // namespace ballast::props
