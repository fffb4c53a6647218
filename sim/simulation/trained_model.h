#pragma once

#include "sim/simulation/workload.h"

namespace ballast::sim {

/// A model in training (sim/trainer/trainer.h), fed from a token source.
class TrainedModel : public Workload {
 public:
  TrainedModel(const Scenario& scenario, const TokenSource& source, const Executor& executor);

  bool learns() const override { return true; }
  StepOutcome run_step(std::size_t step) override;
  Evaluated evaluate(std::size_t step) override;
  void observe(RoutingObserver* observer) override { trainer_.observe(observer); }
  Module& modules() override { return trainer_.model(); }
  std::size_t layers() const override { return scenario_.model.layers; }
  const Balancer& balancer(std::size_t layer) override {
    return trainer_.model().moe(layer).balancer();
  }
  StateDict state() const override { return trainer_.state(); }
  void load_state(const StateDict& state) override { trainer_.load_state(state); }

 private:
  const Scenario scenario_;
  const TokenSource& source_;
  Trainer trainer_;
};

}  // namespace ballast::sim
