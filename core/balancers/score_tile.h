#pragma once

#include <cstddef>
#include <cstdint>

namespace ballast {

/// Some routed tokens as the quantile collectors see them: scores `[tokens, experts]` with rows
/// `stride` values apart, cutoffs `[tokens]`, and `observed` `[tokens]`, 0 for rows to pass over,
/// or null for none of them. Every required bias, cutoff - score, of a row that is not passed over
/// is finite. Views of the caller's data.
struct ScoreTile {
  std::size_t tokens = 0;
  std::size_t experts = 0;
  const float* scores = nullptr;
  std::size_t stride = 0;
  const float* cutoffs = nullptr;
  const std::uint8_t* observed = nullptr;
};

}  // namespace ballast
