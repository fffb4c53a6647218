#pragma once

#include <string_view>

#include "core/random/stream.h"
#include "sim/tokens/token_source.h"

namespace ballast::sim {

/// "training" or "evaluation".
std::string_view split_name(Split split);

/// The random stream of one sequence; what a source draws for it comes from named children of this.
Stream sequence_stream(std::uint64_t seed, const SequenceKey& key);

/// The stream of what all sequences share: frequencies, and the orders of topics.
Stream vocabulary_stream(std::uint64_t seed);

}  // namespace ballast::sim
