#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace ballast {

/// By which of its experts a group is judged.
enum class GroupScore {
  top_2,      ///< the sum of its 2 best s + b; DeepSeek-V3 (arXiv:2412.19437) and its followers
  top_share,  ///< the sum of its floor(k / chosen) best s + b; Megatron-LM, TransformerEngine
};

/// Group-limited (node-limited) top-k: experts [g E / G, (g + 1) E / G) are group g of G = `count`;
/// a token chooses the `chosen` best groups, and its k experts among theirs. With one group there
/// is no limit.
struct ExpertGroups {
  std::size_t count = 1;   ///< G, which divides E
  std::size_t chosen = 1;  ///< groups of a token, at most G
  GroupScore score = GroupScore::top_2;

  bool limit() const { return count > 1; }
  /// Of how many experts of a group the group's score is the sum.
  std::size_t scored(std::size_t top_k) const {
    return score == GroupScore::top_2 ? 2 : top_k / chosen;
  }
};

/// Why `experts` cannot be in such groups, or a token cannot choose `top_k` of them; nothing when it
/// can.
std::optional<std::string> problem(const ExpertGroups& groups, std::size_t experts,
                                   std::size_t top_k);

}  // namespace ballast
