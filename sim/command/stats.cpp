#include "sim/command/stats.h"

#include "sim/command/usage_error.h"

namespace ballast::sim {

ExitCode stats(Arguments, std::ostream&, std::ostream&) {
  throw UsageError("'stats' is not there yet");
}

}  // namespace ballast::sim
