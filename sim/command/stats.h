#pragma once

#include "sim/command/verb.h"

namespace ballast::sim {

/// `ballast stats FILE...`: loads and metrics of recorded routing; `--help` says the rest.
ExitCode stats(Arguments arguments, std::ostream& out, std::ostream& err);

}  // namespace ballast::sim
