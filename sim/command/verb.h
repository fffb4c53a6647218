#pragma once

#include <iosfwd>
#include <span>
#include <string>

#include "sim/command/exit_code.h"

namespace ballast::sim {

/// The words of a command line after the verb.
using Arguments = std::span<const std::string>;

/// One verb of the `ballast` command. `run` writes data to `out`, talk and progress to `err`; it
/// answers
/// `--help` itself. It throws UsageError and InputError for what is wrong with the command line and
/// with files, and OutputError when results cannot be written; anything else that it throws is a
/// fault of the program.
struct Verb {
  std::string name;
  std::string summary;  ///< one line, without a full stop
  ExitCode (*run)(Arguments arguments, std::ostream& out, std::ostream& err);
};

}  // namespace ballast::sim
