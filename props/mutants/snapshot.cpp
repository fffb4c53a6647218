#include <algorithm>
#include <numeric>

#include "props/mutants/altered.h"
#include "props/mutants/families.h"

namespace ballast::props {

namespace {

std::int64_t sum(const std::vector<std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

struct TokensAreAssignments : ChangesRecords {
  void change(LayerSnapshot& record) override { record.tokens = sum(record.expert_load_counts); }
};
struct MeanOverUsedExperts : ChangesRecords {
  void change(LayerSnapshot& record) override {
    if (!record.max_load_over_mean) return;
    const auto experts = static_cast<double>(record.expert_load_counts.size());
    *record.max_load_over_mean *=
        (experts - static_cast<double>(*record.zero_load_experts)) / experts;
  }
};
struct MaxOverTokens : ChangesRecords {
  void change(LayerSnapshot& record) override {
    if (record.max_load_over_mean) {
      *record.max_load_over_mean *= static_cast<double>(model().top_k);
    }
  }
};
struct NoNulls : ChangesRecords {
  void change(LayerSnapshot& record) override {
    if (!record.max_load_over_mean) record.max_load_over_mean = 0.0;
  }
};
struct OneTokenIsNone : ChangesRecords {
  void change(LayerSnapshot& record) override {
    if (!record.zero_load_experts) return;
    record.zero_load_experts =
        std::ranges::count_if(record.expert_load_counts, [](auto n) { return n <= 1; });
  }
};
struct IdleLayersHaveNoDeadExperts : ChangesRecords {
  void change(LayerSnapshot& record) override {
    if (!record.zero_load_experts) record.zero_load_experts = 0;
  }
};

struct ZeroBiases : ChangesRecords {
  void change(LayerSnapshot& record) override {
    for (auto& b : record.biases) {
      if (b) b = 0.0;
    }
  }
};
struct BiasesInBf16 : ChangesRecords {
  void change(LayerSnapshot& record) override {
    for (auto& b : record.biases) {
      if (b) b = static_cast<double>(in_bf16(static_cast<float>(*b)));
    }
  }
};
struct NonfiniteIsZero : ChangesRecords {
  void change(LayerSnapshot& record) override {
    for (auto& b : record.biases) b = b.value_or(0.0);
  }
};
struct OneNonfiniteIsAll : ChangesRecords {
  void change(LayerSnapshot& record) override {
    if (std::ranges::any_of(record.biases, [](const auto& b) { return !b; })) {
      std::ranges::fill(record.biases, std::nullopt);
    }
  }
};
/// A second buffer, which is copied when a step begins.
struct BiasesBeforeTheStep : BuiltInSubject {
  void end_step(bool applied) override {
    before_ = biases();
    BuiltInSubject::end_step(applied);
  }
  Snapshot snapshot() override {
    Snapshot all = BuiltInSubject::snapshot();
    std::size_t l = 0;
    for (auto& [name, record] : all.layers) {
      const bool known = l < before_.size() && before_[l].size() == record.biases.size();
      if (known) record.biases.assign(before_[l].begin(), before_[l].end());
      ++l;
    }
    return all;
  }

 private:
  Biases before_;
};

}  // namespace

std::vector<Mutant> snapshot_mutants() {
  return {
      mutant<TokensAreAssignments>("tokens-are-assignments", "snapshot.definitions",
                                   {"M36", "M105"}, "Takes assignments for tokens."),
      mutant<MeanOverUsedExperts>("mean-over-used-experts", "snapshot.definitions",
                                  {"M109", "M129"},
                                  "Takes the mean load over the experts that have tokens."),
      mutant<MaxOverTokens>("max-over-tokens", "snapshot.definitions", {"M36", "M105"},
                            "Compares the largest load with tokens / E instead of the mean load."),
      mutant<NoNulls>("zero-instead-of-null", "snapshot.definitions", {"M51", "M124"},
                      "Gives layers without assignments a max_load_over_mean of 0."),
      mutant<IdleLayersHaveNoDeadExperts>("idle-layers-have-no-dead", "snapshot.definitions",
                                          {"M51", "M146"},
                                          "Gives layers without assignments no zero-load expert."),
      mutant<OneTokenIsNone>("one-token-is-none", "snapshot.definitions", {"M129", "M147"},
                             "Takes an expert with one token for one without."),
      mutant<ZeroBiases>("snapshot-of-zero-biases", "snapshot.biases", {"M19", "M30"},
                         "Reports biases of zero."),
      mutant<BiasesInBf16>("snapshot-biases-in-bf16", "snapshot.biases", {"M27", "M28"},
                           "Reports biases in bf16."),
      mutant<BiasesBeforeTheStep>("snapshot-of-old-biases", "snapshot.biases", {"M19", "M30"},
                                  "Reports the biases from before the last step."),
      mutant<NonfiniteIsZero>("nonfinite-as-zero", "snapshot.nonfinite-biases", {"M79", "M135"},
                              "Reports 0 in place of a bias that is not finite."),
      mutant<OneNonfiniteIsAll>("one-nonfinite-is-all", "snapshot.nonfinite-biases",
                                {"M79", "M135"},
                                "Reports no bias of a layer in which one is not finite."),
  };
}

}  // namespace ballast::props
