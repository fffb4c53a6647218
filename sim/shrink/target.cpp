#include "sim/shrink/target.h"

#include <cmath>

namespace ballast::sim {

std::optional<Shortfall> shortfall_of(const ExpectationOutcome& outcome) {
  if (outcome.verdict != Verdict::fail || !outcome.value) return std::nullopt;
  if (std::isnan(*outcome.value)) return Shortfall::no_number;
  const auto& at_most = outcome.expectation.at_most;
  return at_most && *outcome.value > *at_most ? Shortfall::above : Shortfall::below;
}

std::optional<Aim> aim_at(const Simulation& run, Keep keep) {
  const auto outcomes = judge(run);
  if (keep == Keep::pass) {
    if (overall(outcomes) != Verdict::pass) return std::nullopt;
    return Aim{run.scenario(), {.keep = keep}};
  }
  for (const auto& outcome : outcomes) {
    const auto shortfall = shortfall_of(outcome);
    if (!shortfall) continue;
    Aim aim{run.scenario(), {.keep = keep, .shortfall = shortfall}};
    aim.scenario.expect = {outcome.expectation};
    return aim;
  }
  return std::nullopt;
}

bool shows(const Simulation& run, const Target& target) {
  const auto outcomes = judge(run);
  if (target.keep == Keep::pass) return overall(outcomes) == Verdict::pass;
  return outcomes.size() == 1 && shortfall_of(outcomes.front()) == target.shortfall;
}

}  // namespace ballast::sim
