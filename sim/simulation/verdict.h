#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario.h"
#include "sim/simulation/simulation.h"

namespace ballast::sim {

enum class Verdict {
  pass,
  fail,
  unknown,  ///< nothing was tested, or there was nothing to test it on
};

std::string_view word(Verdict verdict);

/// How an expectation came out.
struct ExpectationOutcome {
  Expectation expectation;
  Verdict verdict = Verdict::unknown;
  std::optional<double>
      value;  ///< the value that decided: for `every` the worst, for `any` the best
  std::optional<std::size_t> step;  ///< where it stood; nothing for a mean
};

/// Judges an expectation on a run. A value that is not a number meets no bound. `unknown` when the
/// metric has no value in the chosen steps, and when the run ends before the last of them (a run
/// may be cut short from the command line) without a value that breaks the bound. A collapse is
/// judged by the first finding of its kind with an onset in the chosen steps, which `step` then is;
/// `unknown` when the run had too few tokens to tell.
ExpectationOutcome judge(const Expectation& expectation, const Simulation& run);
/// All expectations of the run's scenario.
std::vector<ExpectationOutcome> judge(const Simulation& run);
/// Those of several runs, one after the other.
std::vector<ExpectationOutcome> judge(const std::vector<const Simulation*>& runs);

/// fail if any failed, else unknown if any is unknown or there are none, else pass.
Verdict overall(std::span<const ExpectationOutcome> outcomes);

}  // namespace ballast::sim
