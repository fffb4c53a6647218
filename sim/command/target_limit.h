#pragma once

#include <ostream>

namespace ballast::sim {

/// BALLAST_TARGET=scalar or avx2 keeps to lesser vector instructions than the processor has: to
/// show that it does not show. `wanted` is that word, or null for all that the processor has.
/// Returns whether it has them; if not, `err` says which ones it has.
bool limit_target(const char* wanted, std::ostream& err);

}  // namespace ballast::sim
