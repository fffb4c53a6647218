#pragma once

#include <iosfwd>
#include <span>
#include <string>

#include "sim/command/verb.h"

namespace ballast::sim {

/// The `ballast` command: finds the verb and runs it, or answers `--help`, `help [VERB]` and
/// `--version`. Never throws: every error becomes one line on `err` and an exit code. A stream that
/// cannot take its output (a full disk) makes every result `internal`, and leaves other errors as
/// they are.
ExitCode dispatch(std::span<const Verb> verbs, Arguments arguments, std::ostream& out,
                  std::ostream& err);

}  // namespace ballast::sim
