#include "sim/tokens/make_source.h"

#include "sim/input_error.h"
#include "sim/tokens/constant.h"
#include "sim/tokens/mixture.h"
#include "sim/tokens/padding.h"
#include "sim/tokens/patterns.h"
#include "sim/tokens/recorded_tokens.h"
#include "sim/tokens/text.h"

namespace ballast::sim {
namespace {

std::unique_ptr<TokenSource> unpadded_source(const TokenSettings& settings, std::uint64_t seed) {
  switch (settings.source) {
    case TokenSourceKind::mixture:
      return std::make_unique<MixtureSource>(settings, seed);
    case TokenSourceKind::text:
      return std::make_unique<TextSource>(settings.file, settings.sequence_length, seed);
    case TokenSourceKind::recorded:
      return std::make_unique<RecordedTokenSource>(settings.file, settings.sequence_length, seed);
    case TokenSourceKind::constant:
      break;
  }
  return std::make_unique<ConstantSource>(settings.token, settings.vocabulary,
                                          settings.sequence_length);
}

}  // namespace

std::unique_ptr<TokenSource> make_source(const TokenSettings& settings, std::uint64_t seed) {
  auto source = unpadded_source(settings, seed);
  if (settings.burst_share > 0.0) {
    source = std::make_unique<BurstSource>(std::move(source), settings.burst_share,
                                           settings.burst_length, seed);
  }
  if (settings.repeat_period > 0) {
    source = std::make_unique<RepeatedSource>(std::move(source), settings.repeat_period);
  }
  if (settings.synchronised_steps > 0) {
    source = std::make_unique<SynchronisedSource>(std::move(source), settings.synchronised_steps);
  }
  if (settings.padding == 0.0) return source;
  return std::make_unique<PaddedSource>(std::move(source), settings.padding, seed);
}

std::size_t vocabulary_of(const TokenSettings& settings) {
  constexpr std::size_t bytes = 256;
  if (settings.source == TokenSourceKind::text) return bytes;
  if (settings.source != TokenSourceKind::recorded) return settings.vocabulary;
  try {
    return recorded_tokens(settings.file).vocabulary();
  } catch (const InputError&) {
    return bytes;
  }
}

}  // namespace ballast::sim
