#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/diagnostics/moe_diagnostics.h"
#include "sim/trainer/trainer.h"

namespace ballast::sim {

/// Figures of a step or an evaluation by name: `loss`, the five MoE keys, and `dead_experts` (total
/// over layers), `load_cv`, `entropy`, `gini`, `balancedness` (means over layers). Without any
/// valid token none but the loss, which is then NaN. Of a step besides: `bias_range` and
/// `bias_mean`, the largest over layers of max b - min b and of |mean b|; and `router_gradient`,
/// the gates' part of the gradient norm. Routers alone have no loss and no gradient.
using Figures = std::map<std::string, double>;

/// The load figures of the loads `[layers][experts]` of one step.
Figures load_figures(const Loads& loads);

/// One optimizer step. Steps are numbered from 1.
struct StepRecord {
  std::size_t step = 0;
  bool applied = true;
  double loss_scale = 1.0;
  std::int64_t tokens = 0;
  std::int64_t distinct_inputs = 0;  ///< different ones among the tokens; 0 when not counted
  Figures figures;
  Loads loads;
  std::string digest;  ///< of what was applied, scaled, counted, lost and loaded, and of all biases
                       ///< after it
};

/// One evaluation, made after a step; 0 is the initial model.
struct EvaluationRecord {
  std::size_t step = 0;
  Figures figures;
  std::string digest;
};

/// One log interval of the collector.
struct WindowRecord {
  std::size_t first_step = 0, last_step = 0;
  /// false when a restart in this interval lost counts: the collector is no checkpoint state, so
  /// the steps between the interval's start and the checkpoint are missing.
  bool complete = true;
  DiagnosticsSnapshot snapshot;
};

/// Something that befell the run.
struct Event {
  enum class Kind { overflow, restart };
  Kind kind = Kind::overflow;
  std::size_t step = 0;
  std::size_t checkpoint = 0;  ///< of a restart: the step whose checkpoint the run went on from
};

}  // namespace ballast::sim
