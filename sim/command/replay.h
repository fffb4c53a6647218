#pragma once

#include <ostream>

#include "sim/command/exit_code.h"
#include "sim/command/verb.h"

namespace ballast::sim {

/// `ballast replay RECORDING`: runs a recording again; `--help` says the rest.
ExitCode replay(Arguments arguments, std::ostream& out, std::ostream& err);

}  // namespace ballast::sim
