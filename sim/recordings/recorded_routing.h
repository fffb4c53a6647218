#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/recordings/problem_log.h"

namespace ballast::sim {

/// A layer as its recording names it. Numbers sort before texts.
using LayerName = std::variant<std::int64_t, std::string>;

std::string to_text(const LayerName& layer);

/// The load of one layer.
struct RecordedLayer {
  LayerName layer;
  std::optional<std::int64_t>
      tokens;  ///< nothing when loads are recorded without the number of choices a token
  std::int64_t assignments = 0;      ///< sum of the counts, at most 2^53
  std::vector<std::int64_t> counts;  ///< assignments per expert, `[experts]`
  std::int64_t warm_up_rows = 0;     ///< rows at its front that were left out of the counts
};

/// Loads of one trace, as a reader found them: every row that is sound is counted, every other is
/// in `problems`. Memory does not depend on the number of rows.
struct RecordedRouting {
  std::string trace;  ///< which of several traces of the file; empty when the file holds one
  std::string format;
  std::size_t experts = 0;            ///< E, of every layer
  std::optional<std::size_t> top_k;   ///< experts a token chooses
  std::vector<RecordedLayer> layers;  ///< in the order of their names
  std::vector<std::string> notes;     ///< what was inferred rather than read, and such
  std::vector<Problem> problems;
};

/// More than these is no recording of routing, but a wrong field or a damaged file.
inline constexpr std::size_t max_experts = 16384;
inline constexpr std::size_t max_layers = 1024;
inline constexpr std::size_t max_traces = 1024;
/// Beyond 2^53 loads are no longer exact as doubles.
inline constexpr std::int64_t max_assignments = std::int64_t{1} << 53;

}  // namespace ballast::sim
