#pragma once

#include <ostream>

#include "sim/command/exit_code.h"
#include "sim/command/verb.h"

namespace ballast::sim {

/// `ballast compare A B`: two result sets side by side; `--help` says the rest.
ExitCode compare(Arguments arguments, std::ostream& out, std::ostream& err);

}  // namespace ballast::sim
