#pragma once

#include <map>
#include <set>
#include <string>

#include "props/laws/law.h"

namespace ballast::props {

/// What a law made of some cases.
struct Trial {
  std::map<Outcome::Kind, std::size_t> outcomes;
  std::set<std::string> edges;
  std::size_t cases = 0;  ///< up to the first broken one
  std::string report;     ///< of the first broken one: where, expected, seen

  bool broken() const { return !report.empty(); }
};

/// Runs the law on cases of sizes 0 to `size_max` until one breaks it.
inline Trial run_law(const Law& law, Subject& subject, std::size_t cases, std::uint64_t seed,
                     std::size_t size_max = 40) {
  Trial trial;
  const Stream stream = Stream(seed).child(law.id);
  while (trial.cases < cases && !trial.broken()) {
    Stream of_case = stream.child(trial.cases);
    const Case input = law.generate(of_case, size_max * trial.cases / cases);
    const Outcome outcome = law.check(subject, input);
    ++trial.cases;
    ++trial.outcomes[outcome.kind];
    trial.edges.insert(outcome.edges.begin(), outcome.edges.end());
    if (outcome.kind != Outcome::Kind::broken) continue;
    trial.report = law.id + ", case " + std::to_string(trial.cases - 1) + ": " + outcome.where +
                   "\n  expected: " + outcome.expected + "\n  seen: " + outcome.seen;
  }
  return trial;
}

inline const Law& law_named(const std::vector<Law>& laws, const std::string& id) {
  for (const Law& law : laws) {
    if (law.id == id) return law;
  }
  throw std::invalid_argument("no law " + id);
}

}  // namespace ballast::props
