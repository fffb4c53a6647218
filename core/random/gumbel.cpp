#include "core/random/gumbel.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "core/arithmetic/functions.h"

namespace ballast {
namespace {

constexpr std::size_t lanes = 4;    ///< blocks of Philox in one vector
constexpr std::size_t vectors = 8;  ///< of blocks at a time
constexpr std::size_t words = 4 * lanes * vectors;

/// Words of 32 bits in lanes of 64, so that a product has room.
using Lanes __attribute__((vector_size(8 * lanes))) = std::uint64_t;

/// The products of the low halves.
inline Lanes product(std::uint64_t factor, const Lanes& x) {
#if defined(__AVX2__)
  return (Lanes)_mm256_mul_epu32((__m256i)x, _mm256_set1_epi64x(static_cast<long long>(factor)));
#else
  return x * (Lanes{} + factor);
#endif
}

/// Philox4x32-10 (core/random/philox.h) of the blocks first .. first + lanes - 1 of a stream; word
/// w of block b is out[4 b + w].
inline void philox_blocks(std::uint64_t key, std::uint64_t first, std::uint32_t* out) {
  constexpr std::uint64_t low = 0xffffffff;
  Lanes c0, c1, c2{}, c3{};
  for (std::size_t b = 0; b < lanes; ++b) {
    c0[b] = (first + b) & low;
    c1[b] = (first + b) >> 32;
  }
  std::uint64_t key_0 = key & low, key_1 = key >> 32;
  for (int round = 0; round < 10; ++round) {
    const Lanes product_0 = product(0xD2511F53, c0), product_1 = product(0xCD9E8D57, c2);
    c0 = (product_1 >> 32) ^ c1 ^ key_0;
    c1 = product_1 & low;
    c2 = (product_0 >> 32) ^ c3 ^ key_1;
    c3 = product_0 & low;
    key_0 = (key_0 + 0x9E3779B9) & low;
    key_1 = (key_1 + 0xBB67AE85) & low;
  }
  for (std::size_t b = 0; b < lanes; ++b) {
    const std::array<std::uint32_t, 4> block = {
        static_cast<std::uint32_t>(c0[b]), static_cast<std::uint32_t>(c1[b]),
        static_cast<std::uint32_t>(c2[b]), static_cast<std::uint32_t>(c3[b])};
    std::memcpy(out + 4 * b, block.data(), sizeof block);
  }
}

/// (h + 1/2) / 2^23 for the high 23 bits h: exact, and never 0 or 1.
inline float open_uniform(std::uint32_t word) {
  return (std::bit_cast<float>(0x3f800000 | (word >> 9)) - 1.0f) + 0x1p-24f;
}

void negative_log(std::array<float, words>& values) {
  arithmetic::log(std::span<const float>(values), std::span<float>(values));
  for (float& value : values) value = -value;
}

}  // namespace

void fill_gumbel(std::uint64_t key, std::span<float> out) {
  std::array<std::uint32_t, words> random;
  std::array<float, words> values;
  for (std::size_t first = 0; first < out.size(); first += words) {
    for (std::size_t v = 0; v < vectors; ++v) {
      philox_blocks(key, first / 4 + v * lanes, random.data() + 4 * lanes * v);
    }
    for (std::size_t i = 0; i < words; ++i) values[i] = open_uniform(random[i]);
    negative_log(values);
    negative_log(values);
    std::copy_n(values.begin(), std::min(words, out.size() - first), out.data() + first);
  }
}

}  // namespace ballast
