#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

namespace ballast {

/// A named stream of random bits: the counter-based generator Philox4x32-10 (Salmon, Moraes, Dror,
/// Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011) under a key made from a seed and a
/// path of names. Streams of different names are independent of each other, so a new consumer never
/// shifts an old one; and any position of any stream is reached at once. Satisfies Boost.Random's
/// uniform random bit generator.
class Stream {
 public:
  using result_type = std::uint64_t;
  static constexpr bool has_fixed_range = false;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }

  explicit Stream(std::uint64_t seed);
  /// The stream of a name below this one, at its beginning; where this one stands does not matter.
  Stream child(std::string_view name) const;
  /// The same for a number: `child(name).child(step)`.
  Stream child(std::uint64_t index) const;

  /// The next 64 random bits.
  result_type operator()();
  /// Goes to a position, counted in 64-bit draws from the beginning.
  void seek(std::uint64_t position);
  std::uint64_t position() const { return position_; }

  friend bool operator==(const Stream&, const Stream&) = default;

 private:
  std::uint64_t key_;
  std::uint64_t position_ = 0;
};

}  // namespace ballast
