#pragma once

#include <memory>
#include <type_traits>

#include "core/balancers/bracketed_quantile.h"
#include "core/balancers/histogram_counts.h"
#include "core/balancers/pooled_quantile.h"
#include "core/kernels/score_tile.h"

namespace ballast::sim {

/// What a pass over the batch collects for a balancer. Each thread has one of its own, and they are
/// merged at the end; neither how tiles fall to threads nor the order of merging shows in what
/// comes of it.
class StepCollector {
 public:
  virtual ~StepCollector() = default;
  virtual void observe(const ScoreTile& tile) = 0;
  /// Whether tiles may have logits in place of scores.
  virtual bool takes_logits() const = 0;
  /// A new one that may be merged into this one.
  virtual std::unique_ptr<StepCollector> fork() const = 0;
  /// Adds what a fork of this one has observed.
  virtual void merge(StepCollector& fork) = 0;
};

/// A collector of the core's: a class that observes tiles, forks and merges.
template <class Core>
class CollectorOf final : public StepCollector {
 public:
  explicit CollectorOf(Core core_) : core(std::move(core_)) {}

  void observe(const ScoreTile& tile) override { core.observe(tile); }
  bool takes_logits() const override { return !std::is_same_v<Core, PooledQuantile>; }
  std::unique_ptr<StepCollector> fork() const override {
    return std::make_unique<CollectorOf>(core.fork());
  }
  void merge(StepCollector& fork) override { core.merge(static_cast<CollectorOf&>(fork).core); }

  Core core;
};

}  // namespace ballast::sim
