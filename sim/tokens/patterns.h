#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "sim/tokens/token_source.h"

/// Patterns laid over the sequences of another source.
namespace ballast::sim {

/// Blocks of `length` positions; in a share of them all positions hold the block's first token.
class BurstSource : public TokenSource {
 public:
  /// share in [0, 1], length >= 1.
  BurstSource(std::unique_ptr<TokenSource> source, double share, std::size_t length,
              std::uint64_t seed)
      : source_(std::move(source)), share_(share), length_(length), seed_(seed) {}

  std::size_t vocabulary() const override { return source_->vocabulary(); }
  Sequence sequence(const SequenceKey& key) const override;

 private:
  std::unique_ptr<TokenSource> source_;
  double share_;
  std::size_t length_;
  std::uint64_t seed_;
};

/// Repeated text: the first `period` tokens of a sequence, over and over.
class RepeatedSource : public TokenSource {
 public:
  RepeatedSource(std::unique_ptr<TokenSource> source, std::size_t period)
      : source_(std::move(source)), period_(period) {}

  std::size_t vocabulary() const override { return source_->vocabulary(); }
  Sequence sequence(const SequenceKey& key) const override;

 private:
  std::unique_ptr<TokenSource> source_;
  std::size_t period_;
};

/// Like prompts decoded together: in the first `steps` steps of training every sequence is the
/// first one.
class SynchronisedSource : public TokenSource {
 public:
  SynchronisedSource(std::unique_ptr<TokenSource> source, std::size_t steps)
      : source_(std::move(source)), steps_(steps) {}

  std::size_t vocabulary() const override { return source_->vocabulary(); }
  Sequence sequence(const SequenceKey& key) const override;

 private:
  std::unique_ptr<TokenSource> source_;
  std::size_t steps_;
};

}  // namespace ballast::sim
