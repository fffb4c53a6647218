#include <algorithm>

#include "props/mutants/altered.h"
#include "props/mutants/families.h"

namespace ballast::props {

namespace {

std::string prefix_of(std::size_t layer) {
  return "layers." + std::to_string(layer) + ".";
}

struct SavesInBf16 : BuiltInSubject {
  StateDict save() override {
    const Biases exact = biases();
    Biases rounded = exact;
    round_to_bf16(rounded);
    set_biases(rounded);
    StateDict state = BuiltInSubject::save();
    set_biases(exact);
    return state;
  }
};
struct SetsInBf16 : BuiltInSubject {
  void set_biases(const Biases& biases) override {
    Biases rounded = biases;
    round_to_bf16(rounded);
    BuiltInSubject::set_biases(rounded);
  }
};
/// The cast back to fp32 is part of a forward.
struct InBf16UntilAForward : BuiltInSubject {
  Biases biases() override {
    Biases all = BuiltInSubject::biases();
    if (!ran_) round_to_bf16(all);
    return all;
  }
  void set_biases(const Biases& biases) override {
    ran_ = false;
    BuiltInSubject::set_biases(biases);
  }
  Routing<float> route(const Forward& forward) override {
    ran_ = true;
    return BuiltInSubject::route(forward);
  }

 private:
  bool ran_ = false;
};
/// A second attribute for the same thing.
struct SetsTheUnusedBuffer : BuiltInSubject {
  void set_biases(const Biases& biases) override { unused_ = biases; }

 private:
  Biases unused_;
};
struct OpensWithNoise : BuiltInSubject {
  std::unique_ptr<Balancer> make_balancer() override {
    auto balancer = BuiltInSubject::make_balancer();
    std::vector<float> noise(model().routed_experts);
    for (std::size_t j = 0; j < noise.size(); ++j) noise[j] = j % 2 == 0 ? 0.0625f : -0.0625f;
    balancer->set_biases(noise);
    return balancer;
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

struct LoadsNothing : BuiltInSubject {
  void load(const StateDict&) override {}
};
struct LoadsFirstLayerOnly : BuiltInSubject {
  void load(const StateDict& state) override { layer(0).balancer->load(state, prefix_of(0)); }
};
struct LoadsInReverse : BuiltInSubject {
  void load(const StateDict& state) override {
    for (std::size_t l = 0; l < layers(); ++l) {
      layer(l).balancer->load(state, prefix_of(layers() - 1 - l));
    }
  }
};
struct LoadsTheLastSave : BuiltInSubject {
  StateDict save() override { return last_ = BuiltInSubject::save(); }
  void load(const StateDict&) override { BuiltInSubject::load(last_); }

 private:
  StateDict last_;
};
/// The registry keeps the buffer that was there first.
struct SavesTheFirstState : BuiltInSubject {
  std::unique_ptr<Balancer> make_balancer() override {
    first_.reset();
    return BuiltInSubject::make_balancer();
  }
  StateDict save() override {
    if (!first_) first_ = BuiltInSubject::save();
    return *first_;
  }

 private:
  std::optional<StateDict> first_;
};
struct LoadCentres : BuiltInSubject {
  void load(const StateDict& state) override {
    BuiltInSubject::load(state);
    set_biases(centred(biases()));
  }
};
struct LoadResetsCounts : BuiltInSubject {
  void load(const StateDict& state) override {
    BuiltInSubject::load(state);
    if (collector() != nullptr) BuiltInSubject::snapshot();
  }
};
struct LastLayerDropsPending : BuiltInSubject {
  void load(const StateDict& state) override {
    BuiltInSubject::load(state);
    const auto biases = layer(layers() - 1).biases();
    const std::vector<float> same(biases.begin(), biases.end());
    layer(layers() - 1).balancer->set_biases(same);  // drops what is pending
  }
};
struct SaveClosesTheStep : BuiltInSubject {
  StateDict save() override {
    end_step(true);
    return BuiltInSubject::save();
  }
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
  static std::string name(std::size_t l) { return prefix_of(l) + "counts"; }
};

}  // namespace

std::vector<Mutant> state_mutants() {
  return {
      mutant<SavesInBf16>("saves-in-bf16", "state.every-bit", {"M28"}, "Saves biases in bf16."),
      mutant<SetsInBf16>("sets-in-bf16", "state.set-biases", {"M24", "M27", "M73", "M74"},
                         "Keeps biases that are set in bf16."),
      mutant<InBf16UntilAForward>("in-bf16-until-a-forward", "state.set-biases", {"M27"},
                                  "Tells biases in bf16 until a forward ran."),
      mutant<SetsTheUnusedBuffer>("sets-the-unused-buffer", "state.set-biases", {"M30"},
                                  "Sets biases in a buffer that nobody reads."),
      mutant<OpensWithNoise>("opens-with-noise", "state.set-biases", {"M14"},
                             "Opens with biases that are not zero."),
      mutant<OpensWithOldBiases>("opens-with-old-biases", "state.opens-anew", {"M60", "M63"},
                                 "Opens with the biases of the model before."),
      mutant<LoadsNothing>("loads-nothing", "state.restore", {"M20", "M30"},
                           "Leaves biases as they are at a load."),
      mutant<LoadsFirstLayerOnly>("loads-first-layer-only", "state.restore", {"M20", "M40"},
                                  "Loads the first layer only."),
      mutant<LoadsInReverse>("loads-in-reverse", "state.no-op", {"M40"},
                             "Loads each layer's state into the layer opposite."),
      mutant<LoadsTheLastSave>("loads-the-last-save", "state.every-bit", {"M19"},
                               "Loads the last save whichever is asked for."),
      mutant<SavesTheFirstState>("saves-the-first-state", "state.every-bit", {"M19", "M30"},
                                 "Saves the state of the first save again and again."),
      mutant<LoadCentres>("load-centres", "state.every-bit", {"M18", "M74"},
                          "Centres biases that it loads."),
      mutant<LoadResetsCounts>("load-resets-counts", "state.no-op", {"M37", "M60"},
                               "Sets counts to zero at a load."),
      mutant<LastLayerDropsPending>("last-layer-drops-pending", "state.mid-step", {"M10"},
                                    "Drops what is pending of the last layer only at a load."),
      mutant<SaveClosesTheStep>("save-closes-the-step", "state.mid-step", {"M10"},
                                "Moves biases when it saves in the middle of a step."),
      mutant<SavesCounts>("saves-counts", "counting.recount", {"M60"},
                          "Saves a collector's counts and brings them back at a load."),
  };
}

}  // namespace ballast::props
