#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/random/distributions.h"
#include "sim/tokens/token_source.h"

namespace ballast::sim {

/// Token ids that somebody recorded, numbered anew from 0 in ascending order of id. Of one kind or
/// the other:
/// - a stream: whole numbers, set apart by white space or commas (a JSON list is one too);
/// - a table: CSV whose header has token_id, and count or count_topk, with as many rows of an id as
///   there are experts or layers (their counts are added up): how often, but in no order.
struct RecordedTokens {
  std::vector<std::int64_t> ids;     ///< `[vocabulary]`, ascending: the recorded ones
  std::vector<std::int32_t> stream;  ///< in their order; empty for a table
  std::vector<double> counts;        ///< `[vocabulary]`, of a table

  std::size_t vocabulary() const { return ids.size(); }
};

/// Reads a file of at most 1 GiB, once for each name. Throws InputError with the line when it
/// cannot be read or is of neither kind.
const RecordedTokens& recorded_tokens(const std::string& file);

/// Draws recorded tokens. From a stream: sequences that begin at random positions, those of
/// evaluation in the last tenth and those of training in the rest; one that comes to the end of its
/// part goes on at the beginning of it, so every token is as frequent as in the part. From a table:
/// each token by itself, by its frequency.
class RecordedTokenSource : public TokenSource {
 public:
  /// Throws as recorded_tokens does, and InputError for a stream of less than 10 tokens.
  RecordedTokenSource(const std::string& file, std::size_t length, std::uint64_t seed);

  std::size_t vocabulary() const override { return tokens_.vocabulary(); }
  Sequence sequence(const SequenceKey& key) const override;

 private:
  const RecordedTokens& tokens_;
  Categorical by_count_;  ///< of a table
  std::size_t length_;
  std::uint64_t seed_;
};

}  // namespace ballast::sim
