#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ballast {

/// Some routed tokens as the quantile collectors see them: scores `[tokens, experts]` with rows
/// `stride` values apart (or, for those that can do with them, the logits whose sigmoids they are),
/// cutoffs `[tokens]`, and `observed` `[tokens]`, 0 for rows to pass over, or null for none of
/// them. Every required bias, cutoff - score, of a row that is not passed over is finite. Views of
/// the caller's data. Kernels for one target call no function of it: compiled for that target, it
/// might become everybody's.
struct ScoreTile {
  std::size_t tokens = 0;
  std::size_t experts = 0;
  const float* scores = nullptr;  ///< null where there are logits
  std::size_t stride = 0;
  const float* logits = nullptr;  ///< or null
  std::size_t logits_stride = 0;
  const float* cutoffs = nullptr;
  const std::uint8_t* observed = nullptr;

  const float* row(std::size_t token) const { return scores + token * stride; }
  bool observes(std::size_t token) const { return observed == nullptr || observed[token] != 0; }
  std::size_t observed_tokens() const {
    if (observed == nullptr) return tokens;
    return tokens - static_cast<std::size_t>(std::count(observed, observed + tokens, 0));
  }
  /// Tokens [first, first + count).
  ScoreTile part(std::size_t first, std::size_t count) const {
    return {.tokens = count,
            .experts = experts,
            .scores = scores == nullptr ? nullptr : row(first),
            .stride = stride,
            .logits = logits == nullptr ? nullptr : logits + first * logits_stride,
            .logits_stride = logits_stride,
            .cutoffs = cutoffs + first,
            .observed = observed == nullptr ? nullptr : observed + first};
  }
};

}  // namespace ballast
