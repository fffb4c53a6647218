#pragma once

#include <bit>
#include <cstdint>

namespace ballast {

/// The bits of x as an integer that rises with x; -0 is before 0. No order for NaN.
inline std::uint32_t ordered_bits(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}

/// The x whose ordered bits these are.
inline float from_ordered_bits(std::uint32_t bits) {
  return std::bit_cast<float>(bits >> 31 != 0 ? bits & 0x7fffffffu : ~bits);
}

}  // namespace ballast
