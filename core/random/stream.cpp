#include "core/random/stream.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/random/philox.h"

namespace ballast {
namespace {

// The last word of the counter keeps the uses of one key apart.
constexpr std::uint32_t draws = 0;
constexpr std::uint32_t names = 1;
constexpr std::uint32_t indices = 2;

constexpr std::size_t chunk_size = 8;

std::uint32_t low(std::uint64_t x) {
  return static_cast<std::uint32_t>(x);
}
std::uint32_t high(std::uint64_t x) {
  return static_cast<std::uint32_t>(x >> 32);
}
std::uint64_t join(std::uint32_t low_half, std::uint32_t high_half) {
  return low_half | (std::uint64_t{high_half} << 32);
}

std::array<std::uint32_t, 4> block(std::uint64_t key, std::uint64_t value, std::uint32_t extra,
                                   std::uint32_t use) {
  return philox({low(value), high(value), extra, use}, {low(key), high(key)});
}

std::uint64_t derive(std::uint64_t key, std::uint64_t value, std::uint32_t extra,
                     std::uint32_t use) {
  const auto bits = block(key, value, extra, use);
  return join(bits[0], bits[1]);
}

/// Up to eight bytes, the first one least significant.
std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return value;
}

}  // namespace

Stream::Stream(std::uint64_t seed) : key_(seed) {}

Stream Stream::child(std::string_view name) const {
  std::uint64_t key = key_;
  do {
    const std::string_view chunk = name.substr(0, chunk_size);
    key = derive(key, little_endian(chunk), low(name.size()), names);
    name.remove_prefix(chunk.size());
  } while (!name.empty());
  return Stream(key);
}

Stream Stream::child(std::uint64_t index) const {
  return Stream(derive(key_, index, 0, indices));
}

Stream::result_type Stream::operator()() {
  const auto bits = block(key_, position_ / 2, 0, draws);
  const bool second = position_ % 2 != 0;
  ++position_;
  return second ? join(bits[2], bits[3]) : join(bits[0], bits[1]);
}

void Stream::seek(std::uint64_t position) {
  position_ = position;
}

}  // namespace ballast
