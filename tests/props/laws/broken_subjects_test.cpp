// Every law is broken by a subject that has a fault of its kind: a law that nothing breaks shows
// nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>

#include "core/model/selection.h"
#include "props/laws/families.h"
#include "props/subjects/built_in_subject.h"
#include "tests/props/support/trials.h"

namespace ballast::props {
namespace {

using Chosen = std::span<std::int32_t>;

/// A built-in subject that changes what a forward was routed to, token by token.
struct ChangesRouting : BuiltInSubject {
  virtual void change(const Forward& forward, Routing<float>& routing) = 0;
  Routing<float> route(const Forward& forward) override {
    Routing<float> routing = BuiltInSubject::route(forward);
    change(forward, routing);
    return routing;
  }
};

/// Routes other logits, under other biases, than it was asked to.
struct ChangesInputs : BuiltInSubject {
  virtual void change(const Forward&, Matrix<float>& logits, std::vector<float>& biases) = 0;
  Routing<float> route(const Forward& forward) override {
    const auto now = layer(forward.layer).biases();
    std::vector<float> with(now.begin(), now.end());
    Matrix<float> logits = forward.logits;
    change(forward, logits, with);
    return router().route(std::move(logits), with);
  }
};

float in_bf16(float value) {
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + 0x8000u) & 0xffff0000u);
}

// Selection.

struct FirstExpertForNaN : ChangesRouting {
  void change(const Forward&, Routing<float>& routing) override {
    for (std::size_t t = 0; t < routing.scores.rows(); ++t) {
      if (routing.finite[t] == 0) std::ranges::fill(routing.selection.indices.row(t), 0);
    }
  }
};

/// Gives ties to the higher index, in every forward or in every other one.
struct HigherIndexFirst : BuiltInSubject {
  explicit HigherIndexFirst(bool always) : always_(always) {}
  Routing<float> route(const Forward& forward) override {
    odd_ = !odd_;
    if (!always_ && odd_) return BuiltInSubject::route(forward);
    const auto biases = layer(forward.layer).biases();
    std::vector<float> reversed(biases.rbegin(), biases.rend());
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

struct SubtractsBiasInTraining : ChangesInputs {
  void change(const Forward& forward, Matrix<float>&, std::vector<float>& biases) override {
    if (forward.mode != Mode::train) return;
    for (float& b : biases) b = -b;
  }
};

struct WrongInOneShape : ChangesRouting {
  void change(const Forward&, Routing<float>& routing) override {
    if (model().routed_experts != 128 || model().top_k != 8) return;
    for (std::size_t t = 0; t < routing.weights.rows(); ++t) {
      std::swap(routing.selection.indices(t, 0), routing.selection.indices(t, 7));
      routing.weights(t, 3) *= 1.5f;
    }
  }
};

struct ScansFirst64 : ChangesInputs {
  void change(const Forward&, Matrix<float>& logits, std::vector<float>&) override {
    for (std::size_t t = 0; t < logits.rows(); ++t) {
      for (std::size_t j = 64; j < logits.cols(); ++j) logits(t, j) = -INFINITY;
    }
  }
};

struct RoutesFirst16 : ChangesRouting {
  void change(const Forward&, Routing<float>& routing) override {
    for (std::size_t t = 16; t < routing.selection.indices.rows(); ++t) {
      std::iota(routing.selection.indices.row(t).begin(), routing.selection.indices.row(t).end(),
                0);
    }
  }
};

struct SubtractsTheMeanOfTheBatch : ChangesInputs {
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

struct OddTokensAskForOthers : ChangesInputs {
  void change(const Forward&, Matrix<float>& logits, std::vector<float>&) override {
    for (std::size_t t = 1; t < logits.rows(); t += 2) {
      for (float& z : logits.row(t)) z = -z;
    }
  }
};

struct FavoursExpertZero : ChangesInputs {
  void change(const Forward&, Matrix<float>&, std::vector<float>& biases) override {
    biases[0] += 0.375f;
  }
};

struct BiasInBf16 : ChangesInputs {
  void change(const Forward&, Matrix<float>&, std::vector<float>& biases) override {
    for (float& b : biases) b = in_bf16(b);
  }
};

struct ClampsLogits : ChangesInputs {
  void change(const Forward&, Matrix<float>& logits, std::vector<float>&) override {
    for (float& z : logits.values()) z = std::clamp(z, -3.0f, 3.0f);
  }
};

struct SubtractsBias : ChangesInputs {
  void change(const Forward&, Matrix<float>&, std::vector<float>& biases) override {
    for (float& b : biases) b = -b;
  }
};

struct RanksDisagree : ChangesInputs {
  void change(const Forward& forward, Matrix<float>&, std::vector<float>& biases) override {
    if (forward.rank > 0) biases.back() += 0.5f;
  }
};

/// Group-limited selection over a subject without it. A wrong fill leaves closed groups open to
/// negative values.
class Grouped final : public Subject {
 public:
  explicit Grouped(float fill) : fill_(fill) {
    hello_ = subject_.hello();
    hello_.supports.insert(Capability::groups);
  }
  const Hello& hello() override { return hello_; }
  Answer open(const Open& open) override {
    open_ = open;
    Open plain = open;
    plain.model.groups.reset();
    plain.model.score = ScoreFunction::logit;
    plain.biases.reset();
    return subject_.open(plain);
  }
  Answer ask(const Request& request) override {
    const auto* forward = std::get_if<Forward>(&request);
    if (forward == nullptr || !open_.model.groups) return subject_.ask(request);
    Forward limited = *forward;
    for (std::size_t t = 0; t < limited.logits.rows(); ++t) limit(limited.logits.row(t));
    return subject_.ask(limited);
  }

 private:
  void limit(std::span<float> row) const {
    const auto [groups, kept] = *open_.model.groups;
    const std::size_t size = row.size() / groups;
    for (std::size_t j = 0; j < row.size(); ++j) {
      if (open_.model.score == ScoreFunction::sigmoid) row[j] = 1.0f / (1.0f + std::exp(-row[j]));
      row[j] += (*open_.biases)[0][j];
    }
    std::vector<std::pair<float, std::size_t>> best;
    for (std::size_t g = 0; g < groups; ++g) {
      std::vector<float> values(row.begin() + static_cast<std::ptrdiff_t>(g * size),
                                row.begin() + static_cast<std::ptrdiff_t>((g + 1) * size));
      std::ranges::sort(values, std::greater{});
      best.emplace_back(-(values[0] + values[1]), g);
    }
    std::ranges::sort(best);
    for (std::size_t i = kept; i < groups; ++i) {
      for (std::size_t j = 0; j < size; ++j) row[best[i].second * size + j] = fill_;
    }
  }

  BuiltInSubject subject_;
  Hello hello_;
  Open open_;
  float fill_;
};

// Weights.

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

/// Recomputes the weights from gates that `gate` gives.
struct OwnWeights : ChangesRouting {
  virtual float gate(float score, float bias) { return score + 0.0f * bias; }
  virtual float denominator(float sum) { return sum + 1e-20f; }
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
        if (model().renormalize) p /= denominator(sum);
        p *= static_cast<float>(model().routed_scale);
      }
    }
  }
};

struct WeightsBackFromBiasedScores : OwnWeights {
  float gate(float score, float bias) override { return (score + bias) - bias; }
};
struct NeverRenormalised : OwnWeights {
  float denominator(float) override { return 1.0f; }
};
struct UnguardedDenominator : OwnWeights {
  float denominator(float sum) override { return sum; }
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
struct SingleExpertNotRenormalised : OwnWeights {
  float denominator(float sum) override { return model().top_k == 1 ? 1.0f : sum + 1e-20f; }
};

// Counting.

struct CountsFirstChoice : BuiltInSubject {
  void count(const Forward& forward, const Routing<float>& routing,
             std::vector<std::int64_t>& counters) override {
    for (std::size_t t = 0; t < routing.selection.indices.rows(); ++t) {
      if (!forward.mask.empty() && forward.mask[t] == 0) continue;
      ++counters[static_cast<std::size_t>(routing.selection.indices(t, 0))];
    }
  }
};
struct CountsPadding : BuiltInSubject {
  void count(const Forward&, const Routing<float>& routing,
             std::vector<std::int64_t>& counters) override {
    count_assignments(routing.selection.indices, {}, counters);
  }
};
struct MasksExperts : BuiltInSubject {
  void count(const Forward& forward, const Routing<float>& routing,
             std::vector<std::int64_t>& counters) override {
    if (forward.mask.size() != counters.size()) {
      return BuiltInSubject::count(forward, routing, counters);
    }
    for (const std::int32_t j : routing.selection.indices.values()) {
      counters[static_cast<std::size_t>(j)] += forward.mask[static_cast<std::size_t>(j)];
    }
  }
};
struct UncountsSkippedSteps : BuiltInSubject {
  void end_step(bool applied) override {
    BuiltInSubject::end_step(applied);
    if (!applied && collector() != nullptr) BuiltInSubject::snapshot();
  }
};
struct CountsInBf16 : BuiltInSubject {
  void count(const Forward& forward, const Routing<float>& routing,
             std::vector<std::int64_t>& counters) override {
    BuiltInSubject::count(forward, routing, counters);
    for (auto& n : counters) n = static_cast<std::int64_t>(in_bf16(static_cast<float>(n)));
  }
};
struct CountsIntoLayerZero : BuiltInSubject {
  void count(const Forward& forward, const Routing<float>& routing,
             std::vector<std::int64_t>&) override {
    BuiltInSubject::count(forward, routing, *layer(0).expert_load_counts());
  }
};
struct CountsFirstRankOnly : BuiltInSubject {
  bool counts(const Forward& forward) override {
    return forward.rank == 0 && BuiltInSubject::counts(forward);
  }
};

/// Puts back what a snapshot took.
struct SnapshotKeeps : BuiltInSubject {
  explicit SnapshotKeeps(std::int64_t share) : share_(share) {}
  Snapshot snapshot() override {
    Snapshot taken = BuiltInSubject::snapshot();
    for (std::size_t l = 0; l < layers(); ++l) {
      auto& counters = layer(l).expert_load_counts();
      if (!counters) continue;
      const auto& counts = taken.layers.at("layers." + std::to_string(l)).expert_load_counts;
      for (std::size_t j = 0; j < counts.size(); ++j) (*counters)[j] = counts[j] / share_;
    }
    return taken;
  }

 private:
  std::int64_t share_;
};

// Invisible forwards.

struct ObservesEvaluations : BuiltInSubject {
  bool observes(const Forward& forward) override { return forward.mode != Mode::recompute; }
};
struct CountsRecomputationsOfLaterLayers : BuiltInSubject {
  bool counts(const Forward& forward) override {
    return forward.mode == Mode::train || (forward.mode == Mode::recompute && forward.layer > 0);
  }
};
struct ObservesRecomputations : BuiltInSubject {
  bool observes(const Forward& forward) override { return forward.mode != Mode::eval; }
};
struct CountsEvaluations : BuiltInSubject {
  bool counts(const Forward& forward) override { return forward.mode != Mode::recompute; }
};
struct RecomputesInexactly : ChangesRouting {
  void change(const Forward& forward, Routing<float>& routing) override {
    if (forward.mode != Mode::recompute) return;
    for (float& p : routing.weights.values()) p = std::nextafter(p, 2.0f);
  }
};
struct ObservesPadding : BuiltInSubject {
  void observe(const Forward& forward, const Routing<float>& routing) override {
    Forward unmasked = forward;
    unmasked.mask = {};
    BuiltInSubject::observe(unmasked, routing);
  }
};
struct ForgetsAtEmptyBatches : BuiltInSubject {
  void observe(const Forward& forward, const Routing<float>& routing) override {
    const bool empty = std::ranges::none_of(forward.mask, [](auto v) { return v != 0; }) &&
                       (!forward.mask.empty() || forward.logits.rows() == 0);
    if (empty) set_biases(Biases(layers(), std::vector<float>(model().routed_experts)));
    BuiltInSubject::observe(forward, routing);
  }
};
struct CentresAtEveryStep : BuiltInSubject {
  void end_step(bool applied) override {
    BuiltInSubject::end_step(applied);
    Biases all = biases();
    for (auto& row : all) {
      const float mean =
          std::accumulate(row.begin(), row.end(), 0.0f) / static_cast<float>(row.size());
      for (float& b : row) b -= mean;
    }
    set_biases(all);
  }
};
struct CentresWhenAsked : BuiltInSubject {
  Biases biases() override {
    Biases all = BuiltInSubject::biases();
    for (auto& row : all) row[0] += 0.25f;
    set_biases(all);
    return all;
  }
};

/// Closes a step whenever it refuses something.
class StepsWhenItRefuses final : public Subject {
 public:
  const Hello& hello() override { return subject_.hello(); }
  Answer open(const Open& open) override { return subject_.open(open); }
  Answer ask(const Request& request) override {
    Answer answer = subject_.ask(request);
    if (std::holds_alternative<Refusal>(answer)) subject_.ask(Step{true});
    return answer;
  }

 private:
  BuiltInSubject subject_;
};

// Collectors.

struct RoutesOtherwiseWhileCounted : ChangesInputs {
  void change(const Forward&, Matrix<float>&, std::vector<float>& biases) override {
    if (collector() != nullptr) biases.back() += 0.25f;
  }
};
struct EntersThoughDisabled : BuiltInSubject {
  void enter(bool) override { BuiltInSubject::enter(true); }
};
struct CountsOncePerEntry : BuiltInSubject {
  void enter(bool enabled) override {
    ++entries_;
    BuiltInSubject::enter(enabled);
  }
  void count(const Forward& forward, const Routing<float>& routing,
             std::vector<std::int64_t>& counters) override {
    for (int i = 0; i < entries_; ++i) BuiltInSubject::count(forward, routing, counters);
  }

 private:
  int entries_ = 0;
};
struct RemembersCounts : BuiltInSubject {
  void exit() override {
    for (std::size_t l = 0; l < layers(); ++l) {
      if (layer(l).expert_load_counts()) kept_[l] = *layer(l).expert_load_counts();
    }
    BuiltInSubject::exit();
  }
  void enter(bool enabled) override {
    BuiltInSubject::enter(enabled);
    for (auto& [l, counts] : kept_) {
      if (l < layers() && counts.size() == model().routed_experts) {
        layer(l).expert_load_counts() = counts;
      }
    }
    kept_.clear();
  }

 private:
  std::map<std::size_t, std::vector<std::int64_t>> kept_;
};
struct OmitsIdleLayers : BuiltInSubject {
  Snapshot snapshot() override {
    Snapshot all = BuiltInSubject::snapshot();
    std::erase_if(all.layers, [](const auto& layer) { return layer.second.tokens == 0; });
    return all;
  }
};
/// Takes a second entry for a new one.
class EntersTwice final : public Subject {
 public:
  const Hello& hello() override { return subject_.hello(); }
  Answer open(const Open& open) override { return subject_.open(open); }
  Answer ask(const Request& request) override {
    Answer answer = subject_.ask(request);
    const auto* refusal = std::get_if<Refusal>(&answer);
    if (refusal == nullptr || refusal->code != "already_active") return answer;
    subject_.ask(Collector{CollectorAction::exit, true});
    return subject_.ask(request);
  }

 private:
  BuiltInSubject subject_;
};

// State.

struct SavesInBf16 : BuiltInSubject {
  StateDict save() override {
    const Biases exact = biases();
    Biases rounded = exact;
    for (auto& row : rounded) std::ranges::transform(row, row.begin(), in_bf16);
    set_biases(rounded);
    StateDict state = BuiltInSubject::save();
    set_biases(exact);
    return state;
  }
};
struct LoadsFirstLayerOnly : BuiltInSubject {
  void load(const StateDict& state) override { layer(0).balancer->load(state, "layers.0."); }
};
struct SetsInBf16 : BuiltInSubject {
  void set_biases(const Biases& biases) override {
    Biases rounded = biases;
    for (auto& row : rounded) std::ranges::transform(row, row.begin(), in_bf16);
    BuiltInSubject::set_biases(rounded);
  }
};
struct LoadsResetTheCounters : BuiltInSubject {
  void load(const StateDict& state) override {
    BuiltInSubject::load(state);
    if (collector() != nullptr) BuiltInSubject::snapshot();
  }
};
struct SavesLastLayerWithoutPending : BuiltInSubject {
  void load(const StateDict& state) override {
    BuiltInSubject::load(state);
    const auto biases = layer(layers() - 1).biases();
    const std::vector<float> same(biases.begin(), biases.end());
    layer(layers() - 1).balancer->set_biases(same);  // drops what is pending
  }
};
struct OpensWithOldBiases : BuiltInSubject {
  std::unique_ptr<Balancer> make_balancer() override {
    auto balancer = BuiltInSubject::make_balancer();
    if (old_.size() == model().routed_experts) balancer->set_biases(old_);
    return balancer;
  }
  void end_step(bool applied) override {
    BuiltInSubject::end_step(applied);
    old_ = biases()[0];
  }

 private:
  std::vector<float> old_;
};

struct SavesCounts : BuiltInSubject {
  StateDict save() override {
    StateDict state = BuiltInSubject::save();
    for (std::size_t l = 0; l < layers(); ++l) {
      if (const auto& counts = layer(l).expert_load_counts()) state.put(name(l), *counts);
    }
    return state;
  }
  void load(const StateDict& state) override {
    BuiltInSubject::load(state);
    for (std::size_t l = 0; l < layers(); ++l) {
      auto& counts = layer(l).expert_load_counts();
      if (counts && state.contains(name(l))) counts = state.get<std::int64_t>(name(l));
    }
  }
  static std::string name(std::size_t l) { return "counts." + std::to_string(l); }
};
struct LoadsTheLastSave : BuiltInSubject {
  StateDict save() override { return last_ = BuiltInSubject::save(); }
  void load(const StateDict&) override { BuiltInSubject::load(last_); }

 private:
  StateDict last_;
};

struct Broken {
  const char* law;
  std::function<std::unique_ptr<Subject>()> make;
};

template <class S, class... Args>
Broken breaks(const char* law, Args... args) {
  return {law, [=] { return std::make_unique<S>(args...); }};
}

const std::vector<Broken>& all_broken() {
  static const std::vector<Broken> all = {
      breaks<FirstExpertForNaN>("selection.distinct"),
      breaks<HigherIndexFirst>("selection.top-k", true),
      breaks<BiasInBf16>("selection.top-k"),
      breaks<SubtractsBiasInTraining>("selection.in-force"),
      breaks<WrongInOneShape>("selection.tile-shapes"),
      breaks<ScansFirst64>("selection.every-expert"),
      breaks<RoutesFirst16>("selection.every-token"),
      breaks<SubtractsTheMeanOfTheBatch>("selection.alone"),
      breaks<OddTokensAskForOthers>("selection.token-order"),
      breaks<FavoursExpertZero>("selection.expert-order"),
      breaks<BiasInBf16>("selection.bias-shift"),
      breaks<ClampsLogits>("selection.logit-shift"),
      breaks<SubtractsBias>("selection.monotone"),
      breaks<HigherIndexFirst>("selection.repeatable", false),
      breaks<RanksDisagree>("selection.ranks-agree"),
      breaks<Grouped>("selection.groups", 0.0f),
      breaks<BiasedWeights>("weights.value", false),
      breaks<BiasedWeights>("weights.in-training", true),
      breaks<WrongInOneShape>("weights.tile-shapes"),
      breaks<WeighsFirst256>("weights.every-token"),
      breaks<WeightsBackFromBiasedScores>("weights.tiny-scores"),
      breaks<NeverRenormalised>("weights.sum"),
      breaks<SingleExpertNotRenormalised>("weights.top-1"),
      breaks<UnguardedDenominator>("weights.zero-scores"),
      breaks<BiasedWeights>("weights.bias-free", false),
      breaks<WeightsBackFromBiasedScores>("weights.bias-free"),
      breaks<ScaledTwice>("weights.scale"),
      breaks<CountsFirstChoice>("counting.recount"),
      breaks<CountsPadding>("counting.conservation"),
      breaks<MasksExperts>("counting.recount"),
      breaks<UncountsSkippedSteps>("counting.recount"),
      breaks<SavesCounts>("counting.recount"),
      breaks<CountsIntoLayerZero>("counting.recount"),
      breaks<CountsInBf16>("counting.large"),
      breaks<SnapshotKeeps>("counting.intervals", 2),
      breaks<CountsFirstRankOnly>("counting.split"),
      breaks<CountsIntoLayerZero>("counting.layers-apart"),
      breaks<ObservesEvaluations>("invisible.evaluation"),
      breaks<CountsEvaluations>("invisible.evaluation"),
      breaks<CountsRecomputationsOfLaterLayers>("invisible.recomputation"),
      breaks<ObservesRecomputations>("invisible.recomputation"),
      breaks<RecomputesInexactly>("invisible.recomputation-repeats"),
      breaks<ObservesPadding>("invisible.padding"),
      breaks<CountsPadding>("invisible.padding"),
      breaks<ObservesPadding>("invisible.padding-content"),
      breaks<StepsWhenItRefuses>("invisible.refused-request"),
      breaks<CentresWhenAsked>("invisible.question"),
      breaks<ForgetsAtEmptyBatches>("invisible.empty-batch"),
      breaks<CentresAtEveryStep>("invisible.empty-step"),
      breaks<RoutesOtherwiseWhileCounted>("collector.transparent"),
      breaks<EntersTwice>("collector.already-active"),
      breaks<EntersThoughDisabled>("collector.disabled"),
      breaks<CountsOncePerEntry>("collector.re-entry"),
      breaks<RemembersCounts>("collector.forgets"),
      breaks<SnapshotKeeps>("collector.reset", 1),
      breaks<OmitsIdleLayers>("collector.layers"),
      breaks<LoadsResetTheCounters>("state.no-op"),
      breaks<LoadsFirstLayerOnly>("state.restore"),
      breaks<SavesInBf16>("state.every-bit"),
      breaks<LoadsTheLastSave>("state.every-bit"),
      breaks<SetsInBf16>("state.set-biases"),
      breaks<SavesLastLayerWithoutPending>("state.mid-step"),
      breaks<OpensWithOldBiases>("state.opens-anew"),
  };
  return all;
}

class BrokenSubject : public testing::TestWithParam<Broken> {};

TEST_P(BrokenSubject, IsCaughtWithin2000Cases) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto subject = GetParam().make();
    const Law& law = law_of(GetParam().law);
    const Trials trials = try_law(law, *subject, 2000, seed);
    ASSERT_TRUE(trials.broken) << law.id << " holds";
    EXPECT_FALSE(trials.broken->where.empty());
    EXPECT_FALSE(trials.broken->expected.empty());
    EXPECT_FALSE(trials.broken->seen.empty());
    EXPECT_NE(trials.broken->expected, trials.broken->seen);
  }
}

std::string name_of(const testing::TestParamInfo<Broken>& info) {
  std::string name = info.param.law;
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(c) == 0; }, '_');
  return name + "_" + std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(Laws, BrokenSubject, testing::ValuesIn(all_broken()), name_of);

TEST(GroupLimitedSubject, KeepsTheLawOfGroups) {
  Grouped subject(-INFINITY);
  const Law& law = law_of("selection.groups");
  const Trials trials = try_law(law, subject, 600);
  EXPECT_FALSE(trials.broken) << describe(law, *trials.broken);
  EXPECT_GE(trials.held, 500);
  EXPECT_GE(trials.edges.at("negative score + bias"), 5);
}

TEST(EveryLawOfTheseFamilies, IsBrokenByASubject) {
  std::set<std::string> broken;
  for (const Broken& b : all_broken()) broken.insert(b.law);
  for (const auto family :
       {selection_laws, weights_laws, counting_laws, invisible_laws, collector_laws, state_laws}) {
    for (const Law& law : family()) EXPECT_TRUE(broken.contains(law.id)) << law.id;
  }
}

}  // namespace
}  // namespace ballast::props
