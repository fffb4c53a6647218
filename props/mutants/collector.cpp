#include <algorithm>
#include <map>

#include "props/mutants/altered.h"
#include "props/mutants/families.h"

namespace ballast::props {

namespace {

bool is_already_active(const Answer& answer) {
  const auto* refusal = std::get_if<Refusal>(&answer);
  return refusal != nullptr && refusal->code == "already_active";
}

struct RoutesOtherwiseWhileCounted : ChangesBiases {
  void change(const Forward&, std::vector<float>& biases) override {
    if (collector() != nullptr) biases.back() += 0.25f;
  }
};
/// Weak choices are pruned in the path that is measured.
struct PrunesWhileCounted : ChangesRouting {
  void change(const Forward&, Routing<float>& routing) override {
    if (collector() == nullptr) return;
    for (float& p : routing.weights.values()) {
      if (p < 0.125f) p = 0.0f;
    }
  }
};
struct EntersThoughDisabled : BuiltInSubject {
  void enter(bool) override { BuiltInSubject::enter(true); }
};
/// Hooks that exit leaves behind count once more each.
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
      const bool fits = l < layers() && counts.size() == model().routed_experts;
      if (fits && layer(l).expert_load_counts()) layer(l).expert_load_counts() = counts;
    }
    kept_.clear();
  }

 private:
  std::map<std::size_t, std::vector<std::int64_t>> kept_;
};
struct ExitClosesTheStep : BuiltInSubject {
  void exit() override {
    BuiltInSubject::exit();
    end_step(true);
  }
};
struct OmitsIdleLayers : BuiltInSubject {
  Snapshot snapshot() override {
    Snapshot all = BuiltInSubject::snapshot();
    std::erase_if(all.layers, [](const auto& layer) { return layer.second.tokens == 0; });
    return all;
  }
};
/// A wrapper that forwards the slot of its layer is found beside it.
struct ListsWrappersToo : BuiltInSubject {
  Snapshot snapshot() override {
    Snapshot all = BuiltInSubject::snapshot();
    for (const auto& [name, record] : Snapshot(all).layers) all.layers[name + ".moe"] = record;
    return all;
  }
};
/// Attaching stopped at the first layer.
struct AttachesToFirstLayer : BuiltInSubject {
  Snapshot snapshot() override {
    Snapshot all = BuiltInSubject::snapshot();
    std::erase_if(all.layers, [](const auto& layer) { return layer.first != "layers.0"; });
    return all;
  }
};
struct NamesLayersAnew : BuiltInSubject {
  Snapshot snapshot() override {
    Snapshot named;
    for (auto& [name, record] : BuiltInSubject::snapshot().layers) {
      named.layers["interval." + std::to_string(snapshots_) + "." + name] = record;
    }
    ++snapshots_;
    return named;
  }

 private:
  int snapshots_ = 0;
};

/// Takes a second entry for a new one.
class EntersTwice final : public Interferes {
  Answer ask(const Request& request) override {
    Answer answer = subject().ask(request);
    if (!is_already_active(answer)) return answer;
    subject().ask(Collector{CollectorAction::exit, true});
    return subject().ask(request);
  }
};
class RefusedEntryResetsCounts final : public Interferes {
  Answer ask(const Request& request) override {
    Answer answer = subject().ask(request);
    if (is_already_active(answer)) subject().ask(Collector{CollectorAction::snapshot, true});
    return answer;
  }
};
class RefusedEntryDetaches final : public Interferes {
  Answer ask(const Request& request) override {
    Answer answer = subject().ask(request);
    if (is_already_active(answer)) {
      subject().ask(Collector{CollectorAction::exit, true});
      subject().ask(Collector{CollectorAction::enter, false});
    }
    return answer;
  }
};

}  // namespace

std::vector<Mutant> collector_mutants() {
  return {
      mutant<RoutesOtherwiseWhileCounted>("routes-otherwise-while-counted",
                                          "collector.transparent", {"M43", "M60"},
                                          "Raises a bias while a collector is active."),
      mutant<PrunesWhileCounted>("prunes-while-counted", "collector.transparent", {"M60"},
                                 "Drops small weights while a collector is active."),
      mutant<ExitClosesTheStep>("exit-closes-the-step", "collector.transparent", {"M37", "M61"},
                                "Moves biases when a collector is left."),
      mutant<EntersTwice>("enters-twice", "collector.already-active", {"M35"},
                          "Accepts an entry while a collector is active, and starts anew."),
      mutant<RefusedEntryResetsCounts>("refused-entry-resets-counts", "collector.already-active",
                                       {"M35", "M148"},
                                       "Sets counts to zero when it refuses an entry."),
      mutant<RefusedEntryDetaches>("refused-entry-detaches", "collector.already-active",
                                   {"M148", "M15"},
                                   "Detaches the active collector when it refuses an entry."),
      mutant<EntersThoughDisabled>("enters-though-disabled", "collector.disabled", {"M61"},
                                   "Collects though it was entered disabled."),
      mutant<CountsOncePerEntry>("counts-once-per-entry", "collector.re-entry", {"M35", "M114"},
                                 "Counts once more for each earlier entry."),
      mutant<RemembersCounts>("remembers-counts", "collector.forgets", {"M60", "M61", "M63"},
                              "Goes on from the counts of the last collector."),
      mutant<OmitsIdleLayers>("omits-idle-layers", "collector.layers", {"M58", "M111"},
                              "Reports no layer that had no token."),
      mutant<ListsWrappersToo>("lists-wrappers-too", "collector.layers", {"M109", "M114"},
                               "Reports a layer once more for its wrapper."),
      mutant<AttachesToFirstLayer>("attaches-to-first-layer", "collector.layers",
                                   {"M40", "M148"}, "Reports the first layer only."),
      mutant<NamesLayersAnew>("names-layers-anew", "collector.layers", {"M58"},
                              "Gives layers another name in each snapshot."),
  };
}

}  // namespace ballast::props
