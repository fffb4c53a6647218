#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "props/laws/law.h"

namespace ballast::props {

/// What many cases of one law came to.
struct Trials {
  int cases = 0;
  int held = 0;
  int discarded = 0;
  int unsupported = 0;
  std::map<std::string, int> edges;  ///< cases that met each
  std::optional<Outcome> broken;     ///< the first; nothing is tried after it
};

/// Tries cases of all sizes, from a stream of the law's own.
Trials try_law(const Law& law, Subject& subject, int cases, std::uint64_t seed = 1);

/// The law of an id, which must exist.
const Law& law_of(const std::string& id);

std::string describe(const Law& law, const Outcome& outcome);

}  // namespace ballast::props
