#pragma once

#include <string>

#include "sim/tokens/token_source.h"

namespace ballast::sim {

/// A file as bytes, vocabulary 256. Sequences begin at random positions; those of evaluation lie in
/// the last tenth of the file, those of training in the rest.
class TextSource : public TokenSource {
 public:
  /// Reads the file, of at most 1 GiB. Throws InputError when it cannot be read, or when one of its
  /// two parts is shorter than length + 1 bytes.
  TextSource(const std::string& file, std::size_t length, std::uint64_t seed);

  std::size_t vocabulary() const override { return 256; }
  Sequence sequence(const SequenceKey& key) const override;

  /// Bytes of the file before the part for evaluation.
  std::size_t training_bytes() const { return bytes_.size() - bytes_.size() / 10; }

 private:
  std::string bytes_;
  std::size_t length_;
  std::uint64_t seed_;
};

}  // namespace ballast::sim
