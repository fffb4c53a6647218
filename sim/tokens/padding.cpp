#include "sim/tokens/padding.h"

#include <algorithm>
#include <cmath>

#include "core/random/distributions.h"
#include "sim/tokens/sequence_stream.h"

namespace ballast::sim {

std::size_t draw_valid_length(Stream& stream, std::size_t length, double share) {
  const double longest = static_cast<double>(length);
  const double mean = std::max(1.0, (1.0 - share) * longest);
  const double spread = std::min(mean - 1.0, longest - mean);
  const double exact = mean + spread * (2.0 * uniform(stream) - 1.0);
  const double rounded = std::floor(exact + uniform(stream));
  return static_cast<std::size_t>(std::clamp(rounded, 1.0, longest));
}

Sequence PaddedSource::sequence(const SequenceKey& key) const {
  Sequence out = source_->sequence(key);
  Stream stream = sequence_stream(seed_, key).child("padding");
  out.valid = draw_valid_length(stream, out.tokens.size() - 1, share_);
  // The token after the last valid position stays: it is that position's target.
  std::fill(out.tokens.begin() + static_cast<std::ptrdiff_t>(out.valid) + 1, out.tokens.end(), 0);
  return out;
}

}  // namespace ballast::sim
