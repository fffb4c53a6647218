#include "sim/tokens/token_source.h"

namespace ballast::sim {
namespace {

void append(TokenBatch& batch, const Sequence& sequence) {
  const auto first = sequence.tokens.begin(), last = sequence.tokens.end();
  batch.inputs.insert(batch.inputs.end(), first, last - 1);
  batch.targets.insert(batch.targets.end(), first + 1, last);
  const std::size_t length = sequence.tokens.size() - 1;
  batch.valid.insert(batch.valid.end(), sequence.valid, 1);
  batch.valid.insert(batch.valid.end(), length - sequence.valid, 0);
  batch.length = length;
  ++batch.sequences;
}

}  // namespace

TokenBatch make_batch(const TokenSource& source, SequenceKey first, std::size_t count) {
  TokenBatch batch;
  for (std::size_t i = 0; i < count; ++i) {
    SequenceKey key = first;
    key.sequence += i;
    append(batch, source.sequence(key));
  }
  return batch;
}

}  // namespace ballast::sim
