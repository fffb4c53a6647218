#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario.h"

namespace ballast::sim {

/// A piece of a recording: a step, an evaluation, or the end of a run.
struct Frame {
  enum class Kind : char { step = 'S', evaluation = 'E', end = 'Z' };

  Kind kind = Kind::step;
  std::uint32_t run = 0;   ///< from 0, in the order of the variants
  std::uint64_t step = 0;  ///< of an end: the number of steps
  std::string digest;      ///< of the step, the evaluation, or the whole run
  std::string layers;      ///< of a step: see StepLayers

  friend bool operator==(const Frame&, const Frame&) = default;
};

/// A frame as it stands in a file: its length (8 bytes), itself, and a digest of it (32 characters)
/// by which damage is told from divergence. Numbers are little-endian.
std::string encode(const Frame& frame);
/// Takes the bytes of a frame apart, without length and digest; nothing when they are none.
std::optional<Frame> decode(std::string_view bytes);

/// What a step's frame holds of each layer, one after the other:
///
///     digest   32 characters, of choices, weights, loads and biases
///     slots    4 bytes: top_k, or where experts choose the most experts a token of the step has
///     biases   fp32 `[experts]`, after the step
///     choices  expert ids `[tokens, slots]`, in 1 byte up to 255 experts, in 2 up to 65535, else
///     4;
///              the number of experts stands for none
///     marks    16 bits of each weight `[tokens, slots]`: its two halves, one XOR the other, so
///     that
///              a weight that is one unit in the last place off has another mark
///
/// Tokens are those of the global batch: rank by rank, micro-batch by micro-batch.
class StepLayers {
 public:
  StepLayers(const Scenario& scenario, std::string_view bytes);

  /// Bytes of a choice for this many experts.
  static std::size_t choice_bytes(std::size_t experts);
  static std::uint16_t mark(float weight);

  /// Whether the bytes are as many as the scenario's steps have; only then anything else can be
  /// asked for.
  bool fits() const { return fits_; }
  std::size_t layers() const { return layers_; }
  std::size_t experts() const { return experts_; }
  std::size_t tokens() const { return tokens_; }
  std::size_t slots(std::size_t layer) const { return at_[layer].slots; }

  std::string_view whole(std::size_t layer) const;
  std::string_view digest(std::size_t layer) const;
  /// The bytes of all biases, choices and marks of a layer.
  std::string_view biases(std::size_t layer) const;
  std::string_view choices(std::size_t layer) const;
  std::string_view marks(std::size_t layer) const;
  float bias(std::size_t layer, std::size_t expert) const;
  /// experts() where the token has no expert in this slot.
  std::uint32_t choice(std::size_t layer, std::size_t token, std::size_t slot) const;
  std::uint16_t mark(std::size_t layer, std::size_t token, std::size_t slot) const;

 private:
  /// Where a layer stands.
  struct Layer {
    std::size_t begin = 0, bytes = 0, slots = 0;
  };
  std::size_t choices_at(std::size_t layer) const;
  std::size_t marks_at(std::size_t layer) const;

  std::string_view bytes_;
  std::size_t layers_, experts_, tokens_;
  std::vector<Layer> at_;
  bool fits_ = false;
};

inline constexpr std::size_t digest_characters = 32;

}  // namespace ballast::sim
