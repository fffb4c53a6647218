#pragma once

#include <span>
#include <string>
#include <vector>

#include "props/laws/law.h"

namespace ballast::props {

/// The laws whose id matches one of the patterns: shell patterns, in which * stands for anything, and
/// several may stand in one, separated by commas. No pattern: all laws. Throws sim::UsageError for a
/// pattern that no law matches.
std::vector<Law> select_laws(std::span<const Law> laws, const std::vector<std::string>& patterns);

}  // namespace ballast::props
