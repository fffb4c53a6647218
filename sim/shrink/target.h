#pragma once

#include <optional>
#include <string>

#include "sim/scenario/scenario.h"
#include "sim/simulation/simulation.h"
#include "sim/simulation/verdict.h"

namespace ballast::sim {

/// What a smaller scenario has to keep.
enum class Keep {
  fail,  ///< the first expectation that fails, failing for the same reason
  pass,  ///< all expectations, which hold: what they say happens still does
};

/// How a value misses its bounds.
enum class Shortfall { above, below, no_number };

/// What shrinking a scenario keeps of it.
struct Target {
  Keep keep = Keep::fail;
  std::optional<Shortfall> shortfall = std::nullopt;  ///< for `fail`
};

/// The scenario of a finished run with the expectations that are to be kept, and the target;
/// nothing when the run does not show what is to be kept.
struct Aim {
  Scenario scenario;
  Target target;
};
std::optional<Aim> aim_at(const Simulation& run, Keep keep);

/// Whether a finished run of a smaller scenario still shows it.
bool shows(const Simulation& run, const Target& target);

/// How the outcome misses the bounds; nothing when it does not.
std::optional<Shortfall> shortfall_of(const ExpectationOutcome& outcome);

}  // namespace ballast::sim
