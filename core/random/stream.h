#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

namespace ballast {

/// A named stream of random bits: the counter-based generator Philox4x32-10 (core/random/philox.h)
/// under a key made from a seed and a path of names. Streams of different names are independent of
/// each other, so a new consumer never shifts an old one; and any position of any stream is reached
/// at once. Satisfies Boost.Random's uniform random bit generator.
///
/// The definition: with key words (key mod 2^32, key / 2^32), block b of a stream is philox of the
/// counter (b mod 2^32, b / 2^32, 0, 0), four words w; draw 2b is w0 + 2^32 w1, draw 2b + 1 is w2 +
/// 2^32 w3. The key of `Stream(seed)` is the seed. The key of a child is the first draw of such a
/// block of its parent's key, under a counter whose last word is not 0:
/// - of an index: (index mod 2^32, index / 2^32, 0, 2);
/// - of a name: eight bytes at a time, least significant first and zeros at the end, each under the
/// key that
///   the bytes before gave: (bytes mod 2^32, bytes / 2^32, bytes of the name that are left, 1); the
///   empty name is eight zeros with none left.
/// Keys have 64 bits: among n streams two have the same key with probability about n^2 / 2^65.
class Stream {
 public:
  using result_type = std::uint64_t;
  static constexpr bool has_fixed_range = false;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }

  explicit Stream(std::uint64_t seed);
  /// The stream of a name below this one, at its beginning; where this one stands does not matter.
  Stream child(std::string_view name) const;
  /// The same for a number, for example `child("step").child(step)`; an index is not any name.
  Stream child(std::uint64_t index) const;

  /// The next 64 random bits; after position 2^64 - 1 comes 0 again.
  result_type operator()();
  /// Goes to a position, counted in 64-bit draws from the beginning.
  void seek(std::uint64_t position);
  std::uint64_t position() const { return position_; }
  /// The key that with a position decides every draw.
  std::uint64_t key() const { return key_; }

  friend bool operator==(const Stream&, const Stream&) = default;

 private:
  std::uint64_t key_;
  std::uint64_t position_ = 0;
};

}  // namespace ballast
