#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/random/stream.h"
#include "props/cases/case.h"
#include "props/subjects/subject.h"

namespace ballast::props {

/// What checking a law on one case came to.
struct Outcome {
  enum class Kind {
    holds,
    broken,
    discarded,    ///< the case does not concern the law
    unsupported,  ///< the subject refused what the law needs as unsupported
  };
  Kind kind = Kind::holds;
  // Of a broken law, for people:
  std::string where;     ///< "request 3 (train forward, layer 0), token 1"
  std::string expected;  ///< "experts 0 2, best first"
  std::string seen;
  /// Edges of the input space that the case met ("tie at the cutoff", "no valid token", ...): counted by the
  /// campaign, since a law that never met its edge has shown nothing.
  std::set<std::string> edges;
};

/// A statement that every correct subject keeps.
struct Law {
  std::string id;         ///< stable: "selection.top-k"
  std::string statement;  ///< one sentence in the field's terms
  std::string source;     ///< algorithms.md item, paper, fault ids
  std::set<Capability> needs;
  std::set<std::string> edges;  ///< those it is about: if a campaign met none of one, its verdict is unknown
  /// A case of the given size (0 is the smallest, 100 the largest), decided by the stream.
  std::function<Case(Stream& stream, std::size_t size)> generate;
  std::function<Outcome(Subject& subject, const Case& input)> check;
};

/// All laws, in the order of their families. Ids are unique.
const std::vector<Law>& all_laws();

}  // namespace ballast::props
