#include "sim/scores/token_rows.h"

#include <algorithm>

#include "core/random/distributions.h"
#include "sim/tokens/sequence_stream.h"

namespace ballast::sim {
namespace {

std::uint64_t row_of_token(std::uint64_t seed, std::int32_t token) {
  return Stream(seed)
      .child("scores")
      .child("tokens")
      .child(static_cast<std::uint64_t>(token))
      .key();
}

TokenKind draw_kind(const ScoreSettings& settings, double u) {
  if (u < settings.nonfinite_share) return TokenKind::nonfinite;
  return u < settings.nonfinite_share + settings.aligned_share ? TokenKind::aligned
                                                               : TokenKind::plain;
}

}  // namespace

TokenRows token_rows(const ScoreSettings& settings, const TokenBatch& batch,
                     const SequenceKey& first, std::uint64_t seed) {
  TokenRows rows;
  rows.keys.reserve(batch.inputs.size());
  rows.kinds.reserve(batch.inputs.size());
  for (std::size_t s = 0; s < batch.sequences; ++s) {
    SequenceKey key = first;
    key.sequence += s;
    const Stream stream = sequence_stream(seed, key).child("scores");
    Stream memory = stream.child("memory"), choice = stream.child("choice"),
           kinds = stream.child("kinds");
    const std::uint64_t recorded = stream.child("recorded").key();
    bool was_recorded = false;  // the row of the token before
    for (std::size_t i = 0; i < batch.length; ++i) {
      const bool kept = uniform(memory) < settings.sequence_memory && i > 0;
      const bool driven = uniform(choice) < settings.token_driven;
      const std::int32_t token = batch.inputs[s * batch.length + i];
      rows.keys.push_back(kept     ? rows.keys.back()
                          : driven ? row_of_token(seed, token)
                                   : stream.child(i).key());
      rows.kinds.push_back(draw_kind(settings, uniform(kinds)));
      if (settings.preference != PreferenceLaw::recorded_rows) continue;
      rows.recorded.push_back(kept ? rows.recorded.back() : recorded + i);
      const bool own = kept ? was_recorded : !driven;
      was_recorded = own;
      if (own && rows.kinds.back() == TokenKind::plain) rows.kinds.back() = TokenKind::recorded;
    }
  }
  return rows;
}

void DistinctCount::add(std::span<const std::uint64_t> values,
                        std::span<const std::uint8_t> valid) {
  for (std::size_t t = 0; t < values.size(); ++t) {
    if (valid[t] != 0) values_.push_back(values[t]);
  }
}

std::int64_t DistinctCount::count() {
  std::ranges::sort(values_);
  return std::unique(values_.begin(), values_.end()) - values_.begin();
}

}  // namespace ballast::sim
