#include "sim/tokens/patterns.h"

#include <algorithm>

#include "core/random/distributions.h"
#include "sim/tokens/sequence_stream.h"

namespace ballast::sim {

Sequence BurstSource::sequence(const SequenceKey& key) const {
  Sequence out = source_->sequence(key);
  Stream stream = sequence_stream(seed_, key).child("bursts");
  for (std::size_t first = 0; first < out.tokens.size(); first += length_) {
    const std::size_t count = std::min(length_, out.tokens.size() - first);
    const bool burst = uniform(stream) < share_;
    if (burst) std::fill_n(out.tokens.data() + first, count, out.tokens[first]);
  }
  return out;
}

Sequence RepeatedSource::sequence(const SequenceKey& key) const {
  Sequence out = source_->sequence(key);
  for (std::size_t i = period_; i < out.tokens.size(); ++i) {
    out.tokens[i] = out.tokens[i - period_];
  }
  return out;
}

Sequence SynchronisedSource::sequence(const SequenceKey& key) const {
  SequenceKey shared = key;
  if (key.split == Split::training && key.step < steps_) shared.sequence = shared.rank = 0;
  return source_->sequence(shared);
}

}  // namespace ballast::sim
