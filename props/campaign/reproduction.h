#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "props/cases/case.h"
#include "props/laws/law.h"

namespace ballast::props {

/// Which case of which law: everything there is to say of a generated case, and of its shrinking.
struct Reproduction {
  std::string law;
  std::uint64_t seed = 0;
  std::size_t index = 0;

  /// "selection.top-k:7:123", the law, the seed and the index.
  std::string text() const;
  friend bool operator==(const Reproduction&, const Reproduction&) = default;
};

/// What `text` wrote; nothing when it is something else.
std::optional<Reproduction> parse_reproduction(const std::string& text);

/// The size of the `index`-th case of a law, 0 to 100: it rises from 0 to 100 in steps of three, again
/// and again, and has been everything after 101 cases.
std::size_t case_size(std::size_t index);

/// The `index`-th case of a law under a seed. Nothing else has any part in it.
Case draw_case(const Law& law, std::uint64_t seed, std::size_t index);

}  // namespace ballast::props
