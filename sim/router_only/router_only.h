#pragma once

#include <memory>
#include <span>
#include <vector>

#include "sim/router_only/routed_layer.h"
#include "sim/scores/score_source.h"
#include "sim/simulation/workload.h"

namespace ballast::sim {

/// Routers and balancers of many layers under drawn scores, without a model: for full width and
/// long runs. A micro-batch of a rank is one forward of every layer. Nothing passes from layer to
/// layer, so each goes through all micro-batches of a step, and moves its biases, before its thread
/// turns to the next one. Held at once are the scores of one micro-batch and what a balancer
/// collects in a step, for each thread, and some 30 bytes for each token of a step. Layers run side
/// by side; no result depends on how many.
class RouterOnly : public Workload {
 public:
  RouterOnly(const Scenario& scenario, const TokenSource& source, const Executor& executor);

  bool learns() const override { return false; }
  StepOutcome run_step(std::size_t step) override;
  Evaluated evaluate(std::size_t step) override;
  void observe(RoutingObserver* observer) override { observer_ = observer; }
  Module& modules() override { return tree_; }
  std::size_t layers() const override { return layers_.size(); }
  const Balancer& balancer(std::size_t layer) override { return layers_[layer]->balancer(); }
  StateDict state() const override;
  void load_state(const StateDict& state) override;

 private:
  struct Tree : Module {
    using Module::add_module;
  };

  struct MicroBatch {
    std::size_t rank;
    TokenBatch tokens;
    TokenRows rows;
  };

  std::vector<MicroBatch> micro_batches(std::size_t step, const ScoreSettings& settings) const;
  void forward(std::size_t layer, std::span<const MicroBatch> batches, Loads& loads);

  const Scenario scenario_;
  const TokenSource& source_;
  const Executor& executor_;
  Tree tree_;
  std::vector<std::unique_ptr<RoutedLayer>> layers_;
  ScoreSource scores_;
  RoutingObserver* observer_ = nullptr;
};

}  // namespace ballast::sim
