#pragma once

#include <memory>

#include "core/executor.h"
#include "sim/scenario/scenario.h"
#include "sim/simulation/simulation.h"

namespace ballast::sim::test {

/// A run of some milliseconds a step that has a bit of everything.
inline Scenario small_scenario() {
  Scenario scenario;
  scenario.seed = 3;
  scenario.model = {.layers = 2,
                    .embedding_offset = 1.0,
                    .moe = {.router = {.hidden = 12, .routed_experts = 6, .top_k = 2},
                            .latent = 6,
                            .expert_inner = 5,
                            .shared_experts = 1,
                            .shared_inner = 4}};
  scenario.tokens.vocabulary = 23;
  scenario.tokens.topics = 3;
  scenario.tokens.sequence_length = 8;
  scenario.training.steps = 12;
  scenario.training.sequences = 4;
  scenario.training.log_every = 4;
  return scenario;
}

/// The whole run of a scenario.
inline std::unique_ptr<Simulation> simulated(const Scenario& scenario,
                                             const Executor& executor = serial_executor()) {
  auto run = std::make_unique<Simulation>(scenario, executor);
  while (!run->done()) run->advance();
  return run;
}

}  // namespace ballast::sim::test
