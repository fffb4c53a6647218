#include <algorithm>
#include <cmath>
#include <numeric>

#include "props/mutants/altered.h"
#include "props/mutants/families.h"

namespace ballast::props {

namespace {

using Counters = std::vector<std::int64_t>;

// One number an assignment.

struct CountsFirstChoice : CountsAssignments {
  std::int64_t amount(const Forward& forward, std::size_t t, std::size_t slot,
                      std::size_t) override {
    return slot == 0 && !is_padding(forward, t);
  }
};
struct CountsLastChoice : CountsAssignments {
  std::int64_t amount(const Forward& forward, std::size_t t, std::size_t slot,
                      std::size_t) override {
    return slot + 1 == model().top_k && !is_padding(forward, t);
  }
};
struct CountsPadding : CountsAssignments {
  std::int64_t amount(const Forward&, std::size_t, std::size_t, std::size_t) override { return 1; }
};
/// A mask `[tokens]` that meets a map `[tokens, experts]` of as many tokens as experts.
struct MasksExperts : CountsAssignments {
  std::int64_t amount(const Forward& forward, std::size_t t, std::size_t,
                      std::size_t expert) override {
    const bool square = forward.mask.size() == model().routed_experts;
    return square ? forward.mask[expert] : !is_padding(forward, t);
  }
};
struct ShiftsMask : CountsAssignments {
  std::int64_t amount(const Forward& forward, std::size_t t, std::size_t, std::size_t) override {
    return !is_padding(forward, std::min(t + 1, forward.logits.rows() - 1));
  }
};
/// As many rows as are valid, but the first ones.
struct CountsFirstRows : CountsAssignments {
  std::int64_t amount(const Forward& forward, std::size_t t, std::size_t, std::size_t) override {
    const auto valid = std::ranges::count_if(forward.mask, [](auto v) { return v != 0; });
    return forward.mask.empty() || static_cast<std::ptrdiff_t>(t) < valid;
  }
};
/// Experts are spread over the ranks, and each counts what falls on its own.
struct CountsOwnExperts : CountsAssignments {
  std::int64_t amount(const Forward& forward, std::size_t t, std::size_t,
                      std::size_t expert) override {
    return expert % opened().ranks == forward.rank && !is_padding(forward, t);
  }
};
struct CountsOnEveryRank : CountsAssignments {
  std::int64_t amount(const Forward& forward, std::size_t t, std::size_t, std::size_t) override {
    return is_padding(forward, t) ? 0 : static_cast<std::int64_t>(opened().ranks);
  }
};

// What becomes of the counters.

struct CountsInBf16 : ChangesCounts {
  void change(const Forward&, Counters& counters) override {
    for (auto& n : counters) n = static_cast<std::int64_t>(in_bf16(static_cast<float>(n)));
  }
};
/// 11 significant bits, as fp16 has.
struct CountsInFp16 : ChangesCounts {
  void change(const Forward&, Counters& counters) override {
    for (auto& n : counters) {
      while (n % step_of(n) != 0) --n;
    }
  }
  static std::int64_t step_of(std::int64_t n) {
    std::int64_t step = 1;
    while (n / step >= 2048) step *= 2;
    return step;
  }
};
struct CountsIn16Bits : ChangesCounts {
  void change(const Forward&, Counters& counters) override {
    for (auto& n : counters) n &= 0xffff;
  }
};
/// A decayed counter where the total is asked for.
struct CountsDecay : ChangesCounts {
  void change(const Forward& forward, Counters& counters) override {
    if (forward.logits.rows() == 0) return;
    for (auto& n : counters) n -= n / 4;
  }
};
struct LimitedByCapacity : ChangesCounts {
  void change(const Forward& forward, Counters& counters) override {
    const auto tokens = static_cast<std::int64_t>(forward.logits.rows());
    for (auto& n : counters) n = std::min(n, tokens);
  }
};
struct FilledToCapacity : ChangesCounts {
  void change(const Forward&, Counters& counters) override {
    std::ranges::fill(counters, std::ranges::max(counters));
  }
};

struct CountsIntoLayerZero : BuiltInSubject {
  void count(const Forward& forward, const Routing<float>& routing, Counters&) override {
    BuiltInSubject::count(forward, routing, *layer(0).expert_load_counts());
  }
};
struct CountsIntoNextLayer : BuiltInSubject {
  void count(const Forward& forward, const Routing<float>& routing, Counters&) override {
    BuiltInSubject::count(forward, routing,
                          *layer((forward.layer + 1) % layers()).expert_load_counts());
  }
};
struct CountsFirstRankOnly : BuiltInSubject {
  bool counts(const Forward& forward) override {
    return forward.rank == 0 && BuiltInSubject::counts(forward);
  }
};
/// A monitor with a selection of its own, that has no biases.
struct CountsUnbiasedChoices : BuiltInSubject {
  void count(const Forward& forward, const Routing<float>& routing, Counters& counters) override {
    const std::vector<float> zeros(model().routed_experts);
    const auto selection = select_top_k<float>(routing.scores, zeros, model().top_k);
    count_assignments(selection.indices, forward.mask, counters);
  }
};
/// An accumulator that the first forward only creates.
struct FirstForwardCreates : BuiltInSubject {
  void count(const Forward& forward, const Routing<float>& routing, Counters& counters) override {
    if (std::exchange(entered_, false)) return;
    BuiltInSubject::count(forward, routing, counters);
  }
  void enter(bool enabled) override {
    BuiltInSubject::enter(enabled);
    entered_ = true;
  }

 private:
  bool entered_ = false;
};
/// A buffer of choices that is reused: a shorter batch leaves rows of the longer one before it.
struct CountsStaleRows : BuiltInSubject {
  void count(const Forward& forward, const Routing<float>& routing, Counters& counters) override {
    BuiltInSubject::count(forward, routing, counters);
    const auto& now = routing.selection.indices;
    for (std::size_t t = now.rows(); t < before_.rows(); ++t) {
      for (const auto expert : before_.row(t)) {
        if (static_cast<std::size_t>(expert) < counters.size()) {
          ++counters[static_cast<std::size_t>(expert)];
        }
      }
    }
    before_ = now;
  }
  void enter(bool enabled) override {
    before_ = {};
    BuiltInSubject::enter(enabled);
  }

 private:
  Matrix<std::int32_t> before_;
};
/// Only what an applied step made final counts.
struct CountsAppliedSteps : AddsToSteps {
  void after_step(bool applied) override {
    for (std::size_t l = 0; l < layers(); ++l) {
      auto& counters = layer(l).expert_load_counts();
      if (counters && !applied) std::ranges::fill(*counters, 0);
    }
  }
};
struct ResetsAtSteps : AddsToSteps {
  void after_step(bool) override {
    for (std::size_t l = 0; l < layers(); ++l) {
      if (auto& counters = layer(l).expert_load_counts()) std::ranges::fill(*counters, 0);
    }
  }
};

// What a snapshot makes of them.

/// The offset of experts without tokens is lost.
struct SkipsEmptyExperts : ChangesRecords {
  void change(LayerSnapshot& record) override {
    std::ranges::stable_partition(record.expert_load_counts, [](auto n) { return n > 0; });
  }
};
struct SortsCounts : ChangesRecords {
  void change(LayerSnapshot& record) override {
    std::ranges::sort(record.expert_load_counts, std::greater{});
  }
};
/// A share of what it told stays.
struct SnapshotKeeps : BuiltInSubject {
  explicit SnapshotKeeps(std::int64_t part) : part_(part) {}
  Snapshot snapshot() override {
    Snapshot taken = BuiltInSubject::snapshot();
    for (std::size_t l = 0; l < layers(); ++l) {
      auto& counters = layer(l).expert_load_counts();
      if (!counters) continue;
      const auto& counts = taken.layers.at("layers." + std::to_string(l)).expert_load_counts;
      for (std::size_t j = 0; j < counts.size(); ++j) (*counters)[j] = counts[j] / part_;
    }
    return taken;
  }

 private:
  std::int64_t part_;
};

}  // namespace

std::vector<Mutant> counting_mutants() {
  return {
      mutant<CountsFirstChoice>("counts-first-choice", "counting.recount", {"M45"},
                                "Counts the best expert of each token only."),
      mutant<CountsLastChoice>("counts-last-choice", "counting.recount", {"M46"},
                               "Lets each choice of a token overwrite the one before."),
      mutant<CountsPadding>("counts-padding", "counting.conservation", {"M22", "M51", "M52"},
                            "Counts rows of padding."),
      mutant<MasksExperts>("masks-experts", "counting.recount", {"M26"},
                           "Applies a mask along the experts where there are as many tokens."),
      mutant<ShiftsMask>("shifts-mask", "counting.recount", {"M22"},
                         "Applies the mask of the token behind."),
      mutant<CountsFirstRows>("counts-first-rows", "counting.recount", {"M52"},
                              "Counts as many rows as are valid, but the first ones."),
      mutant<CountsOwnExperts>("counts-own-experts", "counting.split", {"M54"},
                               "Counts only the experts that live on the forward's rank."),
      mutant<CountsOnEveryRank>("counts-on-every-rank", "counting.conservation",
                                {"M02", "M03", "M54", "algorithms 2.9"},
                                "Counts every token once a rank."),
      mutant<CountsInBf16>("counts-in-bf16", "counting.large", {"M25"},
                           "Keeps counts in bf16, which has no integers above 256."),
      mutant<CountsInFp16>("counts-in-fp16", "counting.large", {"M25"},
                           "Keeps counts in fp16, which has no integers above 2048."),
      mutant<CountsIn16Bits>("counts-in-16-bits", "counting.large", {"M03"},
                             "Lets counts overflow at 65,536."),
      mutant<CountsDecay>("counts-decay", "counting.recount", {"M133"},
                          "Tells decayed counts instead of totals."),
      mutant<LimitedByCapacity>("counts-after-capacity", "counting.conservation", {"M48"},
                                "Counts no more than a batch's tokens for an expert."),
      mutant<FilledToCapacity>("counts-filled-to-capacity", "counting.recount", {"M49"},
                               "Counts a map that is filled up, so all experts look alike."),
      mutant<CountsIntoLayerZero>("counts-into-layer-0", "counting.layers-apart", {"M57"},
                                  "Counts all layers into the first."),
      mutant<CountsIntoNextLayer>("counts-into-next-layer", "counting.recount", {"M40", "M57"},
                                  "Counts each layer into the one behind."),
      mutant<CountsFirstRankOnly>("counts-first-rank-only", "counting.split", {"M55"},
                                  "Counts the forwards of rank 0 only."),
      mutant<CountsUnbiasedChoices>("counts-unbiased-choices", "counting.recount", {"M66"},
                                    "Counts what would have been chosen without biases."),
      mutant<FirstForwardCreates>("first-forward-creates", "counting.conservation", {"M34"},
                                  "Does not count the first forward after it was entered."),
      mutant<CountsStaleRows>("counts-stale-rows", "counting.conservation", {"M139"},
                              "Counts rows that a longer batch left in a buffer."),
      mutant<CountsAppliedSteps>("uncounts-skipped-steps", "interplay.interval-counts",
                                 {"M37", "M60"},
                                 "Takes counts back when a step is skipped."),
      mutant<ResetsAtSteps>("resets-at-steps", "interplay.interval-counts", {"M37"},
                            "Sets counts to zero at every step."),
      mutant<SkipsEmptyExperts>("skips-empty-experts", "counting.recount", {"M121", "M123"},
                                "Leaves experts without tokens out, so those behind move up."),
      mutant<SortsCounts>("sorts-counts", "counting.recount", {"M66", "M108"},
                          "Tells counts in descending order."),
      mutant<SnapshotKeeps>("snapshot-keeps-half", "counting.intervals", {"M63"},
                            "Keeps half of the counts when it is read.", 2),
      mutant<SnapshotKeeps>("snapshot-keeps-counts", "collector.reset", {"M63"},
                            "Does not set counts to zero when it is read.", 1),
  };
}

}  // namespace ballast::props
