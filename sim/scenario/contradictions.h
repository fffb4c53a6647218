#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/scenario.h"

namespace ballast::sim {

/// Values that are each right and cannot be together.
struct Contradiction {
  std::vector<std::string> paths;  ///< the fields it is about, the likeliest culprit first
  std::string why;
  std::string right;
};

/// Steps after the last one are none: they never come, so that `--set training.steps=50` works on any file.
/// The first contradiction among the fields of a scenario (its expectations left out), or nothing.
std::optional<Contradiction> contradiction_in(const Scenario& scenario);
/// The first one in an expectation for a run of this scenario; paths are those of the expectation.
std::optional<Contradiction> contradiction_in(const Expectation& expectation,
                                              const Scenario& scenario);

}  // namespace ballast::sim
