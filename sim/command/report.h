#pragma once

#include "sim/command/verb.h"

namespace ballast::sim {

/// `ballast report`: the results of a run as one page of HTML. Exit codes: pass when the page was
/// written, whatever the verdict in it; usage; bad_input when the results cannot be read; internal
/// when the page cannot be written. Nothing is left behind unless it passes.
ExitCode report(Arguments arguments, std::ostream& out, std::ostream& err);

}  // namespace ballast::sim
