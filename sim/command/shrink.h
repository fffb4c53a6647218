#pragma once

#include <ostream>

#include "sim/command/exit_code.h"
#include "sim/command/verb.h"

namespace ballast::sim {

/// `ballast shrink SCENARIO`: the smallest scenario that still fails the same way; `--help` says
/// the rest.
ExitCode shrink_command(Arguments arguments, std::ostream& out, std::ostream& err);

}  // namespace ballast::sim
