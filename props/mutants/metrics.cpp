#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/metrics/moe_metrics.h"
#include "props/mutants/altered.h"
#include "props/mutants/families.h"

namespace ballast::props {

namespace {

using Figures = std::map<std::string, double>;
using Loads = std::vector<std::int64_t>;

std::int64_t sum(const Loads& loads) {
  return std::accumulate(loads.begin(), loads.end(), std::int64_t{0});
}

/// Metrics of other loads than it was asked about.
struct ChangesLoads : BuiltInSubject {
  virtual void change(Counts& loads) = 0;
  Figures metrics(const Counts& counts) override {
    Counts changed = counts;
    change(changed);
    return BuiltInSubject::metrics(changed);
  }
};
/// Changes the figures afterwards; all keys are there.
struct ChangesFigures : BuiltInSubject {
  virtual void change(const Counts& loads, Figures& figures) = 0;
  Figures metrics(const Counts& counts) override {
    Figures figures = BuiltInSubject::metrics(counts);
    if (!figures.empty()) change(counts, figures);
    return figures;
  }
};
/// The mean of a figure of each layer in place of a metric.
struct ChangesFigure : ChangesFigures {
  virtual const char* key() const = 0;
  virtual double figure(const Loads& loads) const = 0;
  void change(const Counts& counts, Figures& figures) override {
    double total = 0.0;
    double layers = 0.0;
    for (const Loads& loads : counts) {
      if (sum(loads) == 0) continue;
      total += figure(loads);
      layers += 1.0;
    }
    figures[key()] = total / layers;
  }
};

struct PooledLayers : ChangesLoads {
  void change(Counts& loads) override {
    for (std::size_t l = 1; l < loads.size(); ++l) {
      for (std::size_t j = 0; j < loads[l].size(); ++j) loads[0][j] += loads[l][j];
    }
    loads.resize(1);
  }
};
struct WrongAxis : ChangesLoads {
  void change(Counts& loads) override {
    Counts turned(loads[0].size(), Loads(loads.size()));
    for (std::size_t l = 0; l < loads.size(); ++l) {
      for (std::size_t j = 0; j < loads[l].size(); ++j) turned[j][l] = loads[l][j];
    }
    loads = std::move(turned);
  }
};
struct LoadsIn32Bits : ChangesLoads {
  void change(Counts& loads) override {
    for (Loads& layer : loads) {
      for (auto& load : layer) load &= 0xffffffff;
    }
  }
};
struct LastExpertIsLost : ChangesLoads {
  void change(Counts& loads) override {
    for (Loads& layer : loads) layer.pop_back();
  }
};
struct WeighsByIndex : ChangesLoads {
  void change(Counts& loads) override {
    for (Loads& layer : loads) {
      for (std::size_t j = 0; j < layer.size(); ++j) layer[j] *= static_cast<std::int64_t>(1 + j);
    }
  }
};
/// [E] against [1] and summed: every expert has the same.
struct BlindToSkew : ChangesLoads {
  void change(Counts& loads) override {
    for (Loads& layer : loads) {
      if (sum(layer) > 0) std::ranges::fill(layer, 1);
    }
  }
};
struct IdleLayersAreBalanced : ChangesLoads {
  void change(Counts& loads) override {
    for (Loads& layer : loads) {
      if (sum(layer) == 0) std::ranges::fill(layer, 1);
    }
  }
};
/// A sum that nobody clears between calls.
struct AddsToTheLastCall : ChangesLoads {
  void change(Counts& loads) override {
    const Counts now = loads;
    for (std::size_t l = 0; l < loads.size() && l < before_.size(); ++l) {
      if (before_[l].size() != loads[l].size()) continue;
      for (std::size_t j = 0; j < loads[l].size(); ++j) loads[l][j] += before_[l][j];
    }
    before_ = now;
  }

 private:
  Counts before_;
};

struct TokensAsDivisor : ChangesFigures {
  void change(const Counts&, Figures& figures) override {
    const auto k = static_cast<double>(std::max<std::size_t>(2, model().top_k));
    for (const char* key : {metric_key::max_violation_mean, metric_key::max_violation_max,
                            metric_key::min_violation_mean}) {
      figures[key] = (figures[key] + 1.0) * k - 1.0;
    }
  }
};
struct SumOverLayers : ChangesFigures {
  void change(const Counts& counts, Figures& figures) override {
    figures[metric_key::min_violation_mean] *= static_cast<double>(counts.size());
  }
};
struct DividesByAllLayers : ChangesFigures {
  void change(const Counts& counts, Figures& figures) override {
    const auto idle =
        std::ranges::count_if(counts, [](const Loads& loads) { return sum(loads) == 0; });
    const auto all = static_cast<double>(counts.size());
    figures[metric_key::max_violation_mean] *= (all - static_cast<double>(idle)) / all;
  }
};
struct MaxIsMean : ChangesFigures {
  void change(const Counts&, Figures& figures) override {
    figures[metric_key::max_violation_max] = figures[metric_key::max_violation_mean];
  }
};
struct BlindBelowHalf : ChangesFigures {
  void change(const Counts&, Figures& figures) override {
    double& violation = figures[metric_key::max_violation_mean];
    if (violation < 0.5) violation = 0.0;
  }
};
struct FiguresInBf16 : ChangesFigures {
  void change(const Counts&, Figures& figures) override {
    for (auto& [key, value] : figures) {
      value = static_cast<double>(in_bf16(static_cast<float>(value)));
    }
  }
};
struct IdleLayersAreNaN : ChangesFigures {
  void change(const Counts& counts, Figures& figures) override {
    for (const Loads& loads : counts) {
      if (sum(loads) == 0) figures[metric_key::max_violation_mean] = NAN;
    }
  }
};

struct AtLeastFairIsOver : ChangesFigure {
  const char* key() const override { return metric_key::frac_oversubscribed_mean; }
  double figure(const Loads& loads) const override {
    const auto experts = static_cast<std::int64_t>(loads.size());
    const auto over = [&](std::int64_t load) { return load * experts >= sum(loads); };
    return static_cast<double>(std::ranges::count_if(loads, over)) / static_cast<double>(experts);
  }
};
/// Fair loads in integers: with a remainder, balanced experts look oversubscribed.
struct FairIsRoundedDown : ChangesFigure {
  const char* key() const override { return metric_key::max_violation_mean; }
  double figure(const Loads& loads) const override {
    const std::int64_t fair =
        std::max<std::int64_t>(1, sum(loads) / static_cast<std::int64_t>(loads.size()));
    return static_cast<double>(std::ranges::max(loads) - fair) / static_cast<double>(fair);
  }
};
struct NotDividedByFair : ChangesFigure {
  const char* key() const override { return metric_key::max_violation_mean; }
  double figure(const Loads& loads) const override {
    return static_cast<double>(std::ranges::max(loads)) -
           static_cast<double>(sum(loads)) / static_cast<double>(loads.size());
  }
};
struct LeastOfTheUsed : ChangesFigure {
  const char* key() const override { return metric_key::min_violation_mean; }
  double figure(const Loads& loads) const override {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const auto load : loads) {
      if (load > 0) least = std::min(least, load);
    }
    const double fair = static_cast<double>(sum(loads)) / static_cast<double>(loads.size());
    return static_cast<double>(least) / fair - 1.0;
  }
};
/// Of the experts that so few assignments can reach.
struct ShareOfReachable : ChangesFigure {
  const char* key() const override { return metric_key::frac_with_tokens_mean; }
  double figure(const Loads& loads) const override {
    const auto used = std::ranges::count_if(loads, [](auto load) { return load > 0; });
    return static_cast<double>(used) /
           static_cast<double>(std::min(static_cast<std::int64_t>(loads.size()), sum(loads)));
  }
};

}  // namespace

std::vector<Mutant> metrics_mutants() {
  return {
      mutant<TokensAsDivisor>("tokens-as-divisor", "metrics.anchors", {"M36", "M105"},
                              "Compares loads with tokens / E instead of assignments / E."),
      mutant<PooledLayers>("pooled-layers", "metrics.per-layer", {"M100"},
                           "Takes the metrics of the loads of all layers together."),
      mutant<WrongAxis>("wrong-axis", "metrics.definitions", {"M101", "M108"},
                        "Takes figures per expert over layers instead of per layer over experts."),
      mutant<SumOverLayers>("sum-over-layers", "metrics.per-layer", {"M109", "M112"},
                            "Sums a figure over layers instead of taking the mean."),
      mutant<DividesByAllLayers>("divides-by-all-layers", "metrics.no-assignments", {"M109"},
                                 "Divides by the number of layers, idle ones included."),
      mutant<MaxIsMean>("max-is-mean", "metrics.definitions", {"M108"},
                        "Reports the mean over layers where the maximum is asked for."),
      mutant<AtLeastFairIsOver>("at-least-fair-is-over", "metrics.anchors", {"M138"},
                                "Takes an expert with exactly the fair load for oversubscribed."),
      mutant<FairIsRoundedDown>("fair-is-rounded-down", "metrics.definitions", {"M138"},
                                "Rounds the fair load down to an integer."),
      mutant<NotDividedByFair>("not-divided-by-fair", "metrics.scale", {"M36", "M105"},
                               "Reports a violation in tokens instead of fair loads."),
      mutant<BlindBelowHalf>("blind-below-half", "metrics.skew", {"M115"},
                             "Reports no violation below one half."),
      mutant<BlindToSkew>("blind-to-skew", "metrics.skew", {"M49", "M88", "M103"},
                          "Reports perfect balance whatever the loads are."),
      mutant<LoadsIn32Bits>("loads-in-32-bits", "metrics.scale", {"M03"},
                            "Keeps the lower 32 bits of a load."),
      mutant<LastExpertIsLost>("last-expert-is-lost", "metrics.order", {"M81"},
                               "Leaves the last expert out."),
      mutant<WeighsByIndex>("weighs-by-index", "metrics.order", {"M103"},
                            "Weighs a load by the number of its expert."),
      mutant<LeastOfTheUsed>("least-of-the-used", "metrics.bounds", {"M121", "M129"},
                             "Takes the smallest load among the experts that have tokens."),
      mutant<ShareOfReachable>("share-of-reachable", "metrics.definitions", {"M147"},
                               "Takes the share of used experts of those that can be reached."),
      mutant<FiguresInBf16>("figures-in-bf16", "metrics.definitions", {"M112"},
                            "Rounds figures to bf16."),
      mutant<AddsToTheLastCall>("adds-to-the-last-call", "metrics.definitions", {"M63", "M114"},
                                "Adds the loads of the call before."),
      mutant<IdleLayersAreBalanced>("idle-layers-are-balanced", "metrics.no-assignments",
                                    {"M109", "M111"},
                                    "Takes a layer without assignments for a balanced one."),
      mutant<IdleLayersAreNaN>("idle-layers-are-nan", "metrics.no-assignments", {"M51", "M79"},
                               "Makes a metric NaN when a layer has no assignments."),
  };
}

}  // namespace ballast::props
