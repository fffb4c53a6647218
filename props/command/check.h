#pragma once

#include <iosfwd>
#include <span>

#include "props/laws/law.h"
#include "sim/command/exit_code.h"
#include "sim/command/verb.h"

namespace ballast::props {

/// `ballast check`: holds a subject against these laws; `--help` says the rest.
sim::ExitCode check(std::span<const Law> laws, sim::Arguments arguments, std::ostream& out, std::ostream& err);

}  // namespace ballast::props
