#pragma once

#include <ostream>

#include "sim/command/exit_code.h"
#include "sim/command/verb.h"

namespace ballast::sim {

/// `ballast signature [SCENARIO...]`: one digest over what this build computes; `--help` says the
/// rest.
ExitCode signature(Arguments arguments, std::ostream& out, std::ostream& err);

}  // namespace ballast::sim
