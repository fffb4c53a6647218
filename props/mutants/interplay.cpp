#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "props/mutants/altered.h"
#include "props/mutants/families.h"
#include "props/mutants/plain_balancer.h"

namespace ballast::props {

namespace {

// When biases move.

struct NeverMoves : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  void move() override { pending().clear(); }
};
struct EverySecondStep : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  void move() override {
    if (pending().empty()) return;
    odd_ = !odd_;
    if (odd_) return pending().clear();
    PlainBalancer::move();
  }

 private:
  bool odd_ = false;
};
struct MovesAtForward : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  void observe(const RoutedBatch& batch) override {
    PlainBalancer::observe(batch);
    move();
  }
};
struct MovesAtSkippedSteps : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  void end_step(bool) override { PlainBalancer::end_step(true); }
};
struct OtherOverflowPolicy : PlainBalancer {
  OtherOverflowPolicy(const Open& open, OnOverflow declared)
      : PlainBalancer(open, declared == OnOverflow::keep ? OnOverflow::discard
                                                         : OnOverflow::keep) {}
};
struct KeepsPending : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  void move() override {
    ObservedTokens kept = pending();
    PlainBalancer::move();
    pending() = std::move(kept);
  }
};
struct MovesFromNothing : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  void move() override {
    if (pending().empty()) biases_now()[0] += 0.125f;
    PlainBalancer::move();
  }
};

/// Valid are all rows that are no padding, whatever their scores are.
struct TakesNonfinite : WithBalancer<PlainBalancer> {
  void observe(const Forward& forward, const Routing<float>& routing) override {
    if (opened().balancer.kind == BalancerKind::none) return;
    layer(forward.layer)
        .balancer->observe({.scores = routing.scores,
                            .cutoffs = routing.selection.cutoffs,
                            .indices = routing.selection.indices,
                            .valid = forward.mask,
                            .rank = forward.rank});
  }
};

/// A stand-in without the fields of a balancer, which the trainer expects.
struct NoBalancerNoStep : BuiltInSubject {
  void end_step(bool applied) override {
    if (opened().balancer.kind == BalancerKind::none) throw std::invalid_argument("no such field");
    BuiltInSubject::end_step(applied);
  }
};

// From which forwards.

struct FirstLayerOnly : BuiltInSubject {
  bool observes(const Forward& forward) override {
    return forward.layer == 0 && BuiltInSubject::observes(forward);
  }
};
struct FirstRankOnly : BuiltInSubject {
  bool observes(const Forward& forward) override {
    return forward.rank == 0 && BuiltInSubject::observes(forward);
  }
};
struct NextLayer : BuiltInSubject {
  void observe(const Forward& forward, const Routing<float>& routing) override {
    Forward next = forward;
    next.layer = (forward.layer + 1) % layers();
    BuiltInSubject::observe(next, routing);
  }
};
struct LayersShareBiases : AddsToSteps {
  void after_step(bool) override {
    Biases all = biases();
    for (std::size_t j = 0; j < model().routed_experts; ++j) {
      float sum = 0.0f;
      for (const auto& row : all) sum += row[j];
      for (auto& row : all) row[j] = sum / static_cast<float>(all.size());
    }
    set_biases(all);
  }
};
struct SnapshotDropsPending : BuiltInSubject {
  Snapshot snapshot() override {
    set_biases(Biases(biases()));
    return BuiltInSubject::snapshot();
  }
};

// Which biases are in force.

struct RoutesWithoutBias : ChangesBiases {
  void change(const Forward&, std::vector<float>& biases) override {
    std::ranges::fill(biases, 0.0f);
  }
};
struct EvaluatesWithOtherSign : ChangesBiases {
  void change(const Forward& forward, std::vector<float>& biases) override {
    if (forward.mode != Mode::eval) return;
    for (float& b : biases) b = -b;
  }
};
struct LooksAhead : ChangesInputs {
  void change(const Forward&, Matrix<float>& logits, std::vector<float>& biases) override {
    for (std::size_t j = 0; j < biases.size(); ++j) {
      for (std::size_t t = 0; t < logits.rows(); ++t) biases[j] -= 0.25f * logits(t, j);
    }
  }
};
/// What goes on after a step with the biases from before it.
struct RemembersOldBiases : ChangesBiases {
  void end_step(bool applied) override {
    before_ = BuiltInSubject::biases();
    BuiltInSubject::end_step(applied);
  }
  void change(const Forward& forward, std::vector<float>& biases) override {
    const bool known = forward.layer < before_.size() &&
                       before_[forward.layer].size() == biases.size();
    if (known && forward.mode == Mode::eval) biases = before_[forward.layer];
  }

 protected:
  const Biases& before() const { return before_; }

 private:
  Biases before_;
};
struct StepAnswersOldBiases : BuiltInSubject {
  void end_step(bool applied) override {
    before_ = BuiltInSubject::biases();
    just_stepped_ = true;
    BuiltInSubject::end_step(applied);
  }
  Biases biases() override {
    return std::exchange(just_stepped_, false) ? before_ : BuiltInSubject::biases();
  }

 private:
  Biases before_;
  bool just_stepped_ = false;
};

}  // namespace

std::vector<Mutant> interplay_mutants() {
  return {
      mutant<WithBalancer<NeverMoves>>("never-moves", "balance.liveness", {"M31", "M42", "M99", "M126"},
                                       "Never moves a bias."),
      mutant<WithBalancer<EverySecondStep>>("every-second-step", "balance.liveness",
                                            {"M17", "M31"},
                                            "Forgets the forwards of every second step."),
      mutant<WithBalancer<MovesAtForward>>("moves-at-forward", "balance.fixed-within-step",
                                           {"M17", "algorithms 1.4"},
                                           "Moves biases at every forward of a step."),
      mutant<WithBalancer<MovesAtSkippedSteps>>("moves-at-skipped-steps",
                                                "interplay.skipped-step",
                                                {"algorithms 2.6", "protocol"},
                                                "Moves biases at a step that is skipped."),
      mutant<WithBalancer<OtherOverflowPolicy>>("other-overflow-policy",
                                                "interplay.overflow-policy",
                                                {"algorithms 2.6", "algorithms 2.9"},
                                                "Keeps what it declares to discard."),
      mutant<WithBalancer<KeepsPending>>("keeps-pending", "interplay.once-per-step", {"M63"},
                                         "Keeps observations after they moved biases."),
      mutant<WithBalancer<MovesFromNothing>>("moves-from-nothing", "balance.nothing-observed",
                                             {"M35", "M51"},
                                             "Moves a bias at a step that saw nothing."),
      mutant<TakesNonfinite>("takes-nonfinite", "balance.finite", {"M79", "M135"},
                             "Balances on tokens whose scores are not finite."),
      mutant<NoBalancerNoStep>("no-balancer-no-step", "collector.transparent", {"M33"},
                               "Refuses a step when there is no balancer."),
      mutant<FirstLayerOnly>("first-layer-only", "balance.liveness", {"M40", "M57"},
                             "Balances the first layer only."),
      mutant<FirstRankOnly>("first-rank-only", "balance.rank-split", {"M54", "M55"},
                            "Balances on the forwards of rank 0 only."),
      mutant<NextLayer>("next-layer", "interplay.layers-apart", {"M40", "M57"},
                        "Shows a forward to the balancer of the layer behind."),
      mutant<LayersShareBiases>("layers-share-biases", "interplay.layers-apart", {"M100"},
                                "Gives all layers the mean of their biases."),
      mutant<SnapshotDropsPending>("snapshot-drops-pending", "interplay.reading-loads",
                                   {"M37", "M43"},
                                   "Drops what is pending when loads are read."),
      mutant<RoutesWithoutBias>("routes-without-bias", "balance.in-force", {"M30", "M31"},
                                "Chooses by the score alone."),
      mutant<EvaluatesWithOtherSign>("evaluates-with-other-sign", "interplay.train-eval",
                                     {"M06", "algorithms 2.9"},
                                     "Chooses by score - bias in evaluation."),
      mutant<RemembersOldBiases>("evaluates-with-old-biases", "interplay.train-eval",
                                 {"M27", "M145"},
                                 "Evaluates with the biases from before the last step."),
      mutant<LooksAhead>("looks-ahead", "balance.causality", {"algorithms 2.2"},
                         "Lets a batch's own scores move its choices."),
      mutant<StepAnswersOldBiases>("step-answers-old-biases", "interplay.step-answer",
                                   {"M19", "M30"},
                                   "Answers a step with the biases from before it."),
  };
}

}  // namespace ballast::props
