#pragma once

#include <iosfwd>
#include <span>
#include <string>

#include "props/laws/law.h"
#include "sim/command/exit_code.h"
#include "sim/command/verb.h"

namespace ballast::props {

/// `ballast laws`: lists these laws; `--help` says the rest.
sim::ExitCode laws(std::span<const Law> all, sim::Arguments arguments, std::ostream& out, std::ostream& err);

/// The document of the laws, props/laws.md: a table for each family, made from the registry.
std::string laws_markdown(std::span<const Law> laws);

}  // namespace ballast::props
