#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ballast::sim {

/// Which part of the data a sequence belongs to; the parts never share a sequence.
enum class Split { training, evaluation };

/// One sequence is named by this and the seed alone, so any batch can be made again on its own.
struct SequenceKey {
  Split split = Split::training;
  std::uint64_t step =
      0;  ///< optimizer step, from 0 (for evaluation: the step after which it is made)
  std::uint64_t sequence =
      0;  ///< index in the step's global batch: (rank * micro_batches + micro_batch) *
          ///< sequences + i, so splitting a batch otherwise gives the same tokens
  std::uint64_t rank = 0;  ///< what the data depends on only where ranks are to differ
};

/// Tokens of one sequence: position i is the input, i + 1 the target.
struct Sequence {
  std::vector<std::int32_t> tokens;  ///< `[length + 1]`, each in [0, vocabulary)
  std::size_t valid = 0;  ///< the first `valid` of `length` positions count; the rest is padding
};

/// Where simulated tokens come from.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual std::size_t vocabulary() const = 0;
  /// The sequence of this key; the same on every call, in any order of calls, from any thread.
  virtual Sequence sequence(const SequenceKey& key) const = 0;
};

/// The tokens of one micro-batch of one rank, sequence after sequence.
struct TokenBatch {
  std::size_t sequences = 0;
  std::size_t length = 0;             ///< positions of a sequence
  std::vector<std::int32_t> inputs;   ///< `[sequences * length]`
  std::vector<std::int32_t> targets;  ///< `[sequences * length]`
  std::vector<std::uint8_t> valid;    ///< `[sequences * length]`; 0 is padding
};

/// Sequences first.sequence .. first.sequence + count - 1 of a source as one batch.
TokenBatch make_batch(const TokenSource& source, SequenceKey first, std::size_t count);

}  // namespace ballast::sim
