#pragma once

#include "sim/tokens/token_source.h"

namespace ballast::sim {

/// The same token at every position: the most a batch can agree.
class ConstantSource : public TokenSource {
 public:
  /// token < vocabulary.
  ConstantSource(std::size_t token, std::size_t vocabulary, std::size_t length)
      : token_(static_cast<std::int32_t>(token)), vocabulary_(vocabulary), length_(length) {}

  std::size_t vocabulary() const override { return vocabulary_; }
  Sequence sequence(const SequenceKey&) const override {
    return {.tokens = std::vector<std::int32_t>(length_ + 1, token_), .valid = length_};
  }

 private:
  std::int32_t token_;
  std::size_t vocabulary_;
  std::size_t length_;
};

}  // namespace ballast::sim
