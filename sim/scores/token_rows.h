#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/scores/score_settings.h"
#include "sim/tokens/token_source.h"

namespace ballast::sim {

/// How the logits of a token differ from those of most.
enum class TokenKind : std::uint8_t { plain, aligned, nonfinite, recorded };

/// Which row of random values each token of a batch takes, in every layer: tokens of the same row
/// are the same to all routers.
struct TokenRows {
  std::vector<std::uint64_t> keys;  ///< `[tokens]`
  std::vector<TokenKind> kinds;     ///< `[tokens]`
  /// The recorded token of each of kind `recorded`, modulo their number; `[tokens]`, or empty.
  std::vector<std::uint64_t> recorded = {};
};

/// The rows of sequences first.sequence ... of a batch. A token takes the row of the one before it
/// with probability `sequence_memory` (not the first of a sequence); else, with probability
/// `token_driven`, the row of its token id; else one of its own. So the indicator "expert j is
/// chosen" has autocorrelation sequence_memory^d at a distance of d, for rows of tokens of their
/// own. With recorded rows, a row of its own is that of a recorded token: in a sequence they follow
/// each other as they do in the recording, from a random one on.
TokenRows token_rows(const ScoreSettings& settings, const TokenBatch& batch,
                     const SequenceKey& first, std::uint64_t seed);

/// Counts different rows (or token ids) among those of valid tokens, over several batches.
class DistinctCount {
 public:
  /// `values` and `valid` of one size.
  void add(std::span<const std::uint64_t> values, std::span<const std::uint8_t> valid);
  std::int64_t count();

 private:
  std::vector<std::uint64_t> values_;
};

}  // namespace ballast::sim
