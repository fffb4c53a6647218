#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

namespace ballast::sim {

/// A 128-bit digest of a sequence of values (XXH3, which gives the same on every platform). Values are taken
/// in by their bits; to take in a list, take in its length first.
class Digest {
 public:
  Digest();
  ~Digest();
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;

  template <class T>
    requires std::is_arithmetic_v<T>
  void add(T value) {
    add_bytes(&value, sizeof value);
  }
  template <class T>
  void add(std::span<const T> values) {
    add(static_cast<std::uint64_t>(values.size()));
    add_bytes(values.data(), values.size_bytes());
  }

  /// 32 hexadecimal digits; of what was taken in so far.
  std::string hex() const;

 private:
  void add_bytes(const void* data, std::size_t size);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ballast::sim
