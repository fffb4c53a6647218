#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/matrix.h"
#include "core/state.h"

namespace ballast {

/// What one training forward of one layer shows its balancer. All views are of the caller's data
/// and valid during the call only. Rows without `valid` (padding, or scores that are not finite)
/// count for nothing.
struct RoutedBatch {
  MatrixView<const float> scores;          ///< raw (unbiased) scores s, `[tokens, experts]`
  std::span<const float> cutoffs;          ///< alpha, `[tokens]`: the (k+1)-th largest of s + b
  MatrixView<const std::int32_t> indices;  ///< chosen experts, then no_expert, `[tokens, slots]`
  std::span<const std::uint8_t> valid;     ///< `[tokens]`, or empty when every row is valid
  std::size_t rank = 0;                    ///< simulated data-parallel rank that ran the forward
  std::size_t sequence_length = 0;         ///< rows of a sequence; 0: all rows are one sequence
  /// `indices` with no_expert in place of what was dropped for want of capacity; empty when nothing
  /// can be.
  MatrixView<const std::int32_t> kept = {};
};

/// Keeps the selection biases of one layer. A router selects by score + bias; the balancer sees
/// what training forwards routed and moves the biases. Evaluation and recomputation never reach it.
class Balancer {
 public:
  virtual ~Balancer() = default;

  /// b, `[experts]`, fp32: the biases in force for the next forward.
  virtual std::span<const float> biases() const = 0;
  /// Replaces the biases. Throws std::invalid_argument when the number is wrong.
  virtual void set_biases(std::span<const float> biases) = 0;

  /// Takes in a training forward.
  virtual void observe(const RoutedBatch& batch) = 0;
  /// Closes an optimizer step over all forwards of all ranks since the last one; `applied` is false
  /// for a step that was skipped on overflow.
  virtual void end_step(bool applied) = 0;

  /// Everything later behaviour depends on, pending observations included, under names that begin
  /// with `prefix`; `load` brings all of it back to the bit.
  virtual void save(StateDict& state, const std::string& prefix) const = 0;
  virtual void load(const StateDict& state, const std::string& prefix) = 0;
};

}  // namespace ballast
