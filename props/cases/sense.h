#pragma once

#include <set>

#include "props/cases/case.h"
#include "props/subjects/subject.h"

namespace ballast::props {

/// Whether every request can be answered where it stands: shapes fit the model, layers and ranks
/// exist, saves come before their loads, a collector is entered while none is active and otherwise
/// asked while one is, and a recomputation repeats an earlier training forward. Generators give
/// such cases; shrinking may not, and laws say nothing of others.
bool makes_sense(const Case& input);

/// The case as far as a subject of these capabilities can follow: requests that need others are
/// left out, masks are dropped with the rows they mask, and all ranks are the first.
Case adapted(Case input, const std::set<Capability>& supports);

/// Whether a subject of these capabilities cannot follow every case.
bool needs_adapting(const std::set<Capability>& supports);

}  // namespace ballast::props
