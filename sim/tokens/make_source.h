#pragma once

#include <cstdint>
#include <memory>

#include "sim/tokens/token_settings.h"
#include "sim/tokens/token_source.h"

namespace ballast::sim {

/// The source these settings describe, padding included; they have to be in range, as a scenario
/// file's are. Reads the file of a `text` or `recorded` source, once: throws InputError when it
/// cannot be read or is too short.
std::unique_ptr<TokenSource> make_source(const TokenSettings& settings, std::uint64_t seed);

/// The vocabulary of that source. Reads the file of a `recorded` one; when it cannot be read, that
/// is left for make_source to say.
std::size_t vocabulary_of(const TokenSettings& settings);

}  // namespace ballast::sim
