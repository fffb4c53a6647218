#pragma once

#include <span>
#include <string>
#include <vector>

namespace ballast::props {

/// What patterns choose from, in words for an error line.
struct Choice {
  std::string option;  ///< "laws", whose pattern it is
  std::string noun;    ///< "law has such an id"
  std::string listed_by;
};

/// Positions of the names that one of the patterns matches: shell patterns, in which * stands for anything, and
/// several may stand in one, separated by commas. No pattern: all. Throws sim::UsageError for a pattern that
/// matches no name.
std::vector<std::size_t> select(std::span<const std::string> names, const std::vector<std::string>& patterns,
                                const Choice& choice);

}  // namespace ballast::props
