#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace ballast::oracle {

/// Bit patterns, so that equality of the results is equality to the bit.
inline std::vector<std::uint32_t> bits(std::span<const float> values) {
  std::vector<std::uint32_t> out;
  for (const float v : values) out.push_back(std::bit_cast<std::uint32_t>(v));
  return out;
}
inline std::vector<std::uint64_t> bits(std::span<const double> values) {
  std::vector<std::uint64_t> out;
  for (const double v : values) out.push_back(std::bit_cast<std::uint64_t>(v));
  return out;
}

}  // namespace ballast::oracle
