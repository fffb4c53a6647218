#include "sim/tokens/sequence_stream.h"

namespace ballast::sim {

std::string_view split_name(Split split) {
  return split == Split::training ? "training" : "evaluation";
}

Stream sequence_stream(std::uint64_t seed, const SequenceKey& key) {
  return Stream(seed)
      .child("tokens")
      .child(split_name(key.split))
      .child(key.step)
      .child(key.sequence);
}

Stream vocabulary_stream(std::uint64_t seed) {
  return Stream(seed).child("tokens").child("vocabulary");
}

}  // namespace ballast::sim
