#include "tests/props/support/trials.h"

#include <stdexcept>

namespace ballast::props {

Trials try_law(const Law& law, Subject& subject, int cases, std::uint64_t seed) {
  Trials trials;
  const Stream stream = Stream(seed).child(law.id);
  for (; trials.cases < cases && !trials.broken; ++trials.cases) {
    Stream own = stream.child(static_cast<std::uint64_t>(trials.cases));
    const Case input = law.generate(own, static_cast<std::size_t>(trials.cases % 101));
    const Outcome outcome = law.check(subject, input);
    for (const auto& edge : outcome.edges) ++trials.edges[edge];
    trials.held += outcome.kind == Outcome::Kind::holds;
    trials.discarded += outcome.kind == Outcome::Kind::discarded;
    trials.unsupported += outcome.kind == Outcome::Kind::unsupported;
    if (outcome.kind == Outcome::Kind::broken) trials.broken = outcome;
  }
  return trials;
}

const Law& law_of(const std::string& id) {
  for (const Law& law : all_laws()) {
    if (law.id == id) return law;
  }
  throw std::out_of_range("no law " + id);
}

std::string describe(const Law& law, const Outcome& outcome) {
  return law.id + ": " + law.statement + "\n  at        " + outcome.where + "\n  expected  " +
         outcome.expected + "\n  seen      " + outcome.seen;
}

}  // namespace ballast::props
