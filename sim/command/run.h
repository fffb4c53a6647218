#pragma once

#include <ostream>

#include "sim/command/exit_code.h"
#include "sim/command/verb.h"

namespace ballast::sim {

/// `ballast run [SCENARIO]`: simulates a scenario and judges it; `--help` says the rest.
ExitCode run(Arguments arguments, std::ostream& out, std::ostream& err);

}  // namespace ballast::sim
