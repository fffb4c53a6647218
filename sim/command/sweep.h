#pragma once

#include <ostream>

#include "sim/command/exit_code.h"
#include "sim/command/verb.h"

namespace ballast::sim {

/// `ballast sweep FILE`: runs the scenarios of a sweep file; `--help` says the rest.
ExitCode sweep(Arguments arguments, std::ostream& out, std::ostream& err);

}  // namespace ballast::sim
