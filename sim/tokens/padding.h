#pragma once

#include <memory>

#include "core/random/stream.h"
#include "sim/tokens/token_source.h"

namespace ballast::sim {

/// A valid length whose mean is (1 - share) * length, spread evenly as far to both sides as [1,
/// length] allows; a fraction is rounded up with its own probability, so the mean is exact. When
/// the mean is below 1 it is always 1: a sequence has something to learn from. Two draws.
std::size_t draw_valid_length(Stream& stream, std::size_t length, double share);

/// Another source's sequences with their ends cut off: padded positions hold token 0 and are not
/// valid.
class PaddedSource : public TokenSource {
 public:
  /// share in (0, 1): the expected share of padded positions.
  PaddedSource(std::unique_ptr<TokenSource> source, double share, std::uint64_t seed)
      : source_(std::move(source)), share_(share), seed_(seed) {}

  std::size_t vocabulary() const override { return source_->vocabulary(); }
  Sequence sequence(const SequenceKey& key) const override;

 private:
  std::unique_ptr<TokenSource> source_;
  double share_;
  std::uint64_t seed_;
};

}  // namespace ballast::sim
