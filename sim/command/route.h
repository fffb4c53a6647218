#pragma once

#include <ostream>

#include "sim/command/exit_code.h"
#include "sim/command/verb.h"

namespace ballast::sim {

/// `ballast route LOGITS.npy`: routes one batch and moves the biases; `--help` says the rest.
ExitCode route(Arguments arguments, std::ostream& out, std::ostream& err);

}  // namespace ballast::sim
