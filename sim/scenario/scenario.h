#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/settings.h"
#include "sim/faults/balancer_fault.h"
#include "sim/scenario/balancer_settings.h"
#include "sim/scenario/schedule.h"
#include "sim/scores/score_settings.h"
#include "sim/tokens/token_settings.h"

namespace ballast::sim {

/// What runs: a model in training, or routers alone under drawn scores.
enum class Mode { train, router_only };

/// AdamW (Loshchilov and Hutter, arXiv:1711.05101).
struct OptimizerSettings {
  double learning_rate = 0.01;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
};

/// Dynamic loss scale: halves at a step that overflows, doubles after `growth_interval` steps
/// without one.
struct LossScaleSettings {
  double initial = 65536.0;  ///< a power of two
  std::size_t growth_interval = 200;
};

struct TrainingSettings {
  std::size_t steps = 100;
  std::size_t ranks = 1;
  std::size_t micro_batches = 1;
  std::size_t sequences = 8;  ///< of one micro-batch of one rank
  OptimizerSettings optimizer;
  LossScaleSettings loss_scale;
  std::size_t evaluate_every = 0;  ///< steps; 0 is never
  std::size_t evaluate_sequences = 8;
  std::size_t log_every = 10;        ///< steps of a diagnostics window; 0 is never
  std::size_t checkpoint_every = 0;  ///< steps; 0: only the initial state
  std::vector<std::size_t>
      overflow_steps;                      ///< steps (from 1) whose gradient gets a nonfinite value
  std::vector<std::size_t> restart_after;  ///< after these steps (from 1) the run dies once and
                                           ///< goes on from the last checkpoint
};

/// How the values of a metric over the chosen steps become the one that is judged.
enum class Aggregate { every, any, mean, last };

/// What a run is expected to collapse into (sim/collapse/collapse.h).
enum class ExpectedCollapse {
  none,
  any,
  dead_experts,
  monopoly,
  oscillation,
  drift,
  divergence,
  blind,
  input_degenerate
};

/// A bound on a metric over steps [from, until] (from 1, inclusive), or on the final state; or, in
/// its place, a collapse whose onset lies in [from, until].
struct Expectation {
  std::string metric;
  std::optional<ExpectedCollapse> collapse = std::nullopt;
  Aggregate aggregate = Aggregate::every;
  std::size_t from = 1;
  std::optional<std::size_t> until = std::nullopt;  ///< default: the last step
  std::optional<double> at_most = std::nullopt;
  std::optional<double> at_least = std::nullopt;
};

/// One simulated experiment, complete: with the program's version it decides every bit of the
/// result.
struct Scenario {
  std::string name = "unnamed";
  std::string description;
  std::uint64_t seed = 1;
  Mode mode = Mode::train;
  LanguageModelSettings model;  ///< vocabulary is taken from the token source
  TokenSettings tokens;
  ScoreSettings scores;  ///< for router_only
  BalancerSettings balancer;
  BalancerFault fault = BalancerFault::none;
  TrainingSettings training;
  bool diagnostics = true;  ///< whether the load collector is on; changes nothing else
  std::vector<ScheduleEntry> schedule;
  std::vector<Expectation> expect;
};

}  // namespace ballast::sim
