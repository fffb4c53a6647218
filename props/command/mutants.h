#pragma once

#include <iosfwd>
#include <span>

#include "props/laws/law.h"
#include "props/mutants/mutant.h"
#include "sim/command/exit_code.h"
#include "sim/command/verb.h"

namespace ballast::props {

/// `ballast mutants`: holds these mutants against these laws; `--help` says the rest.
sim::ExitCode mutants(std::span<const Law> laws, std::span<const Mutant> mutants, sim::Arguments arguments,
                      std::ostream& out, std::ostream& err);

}  // namespace ballast::props
