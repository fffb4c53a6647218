#pragma once

#include <cstddef>
#include <cstdint>

/// Arrays of random values as kernels; core/random/fills.h says what the values are.
namespace ballast::kernels {

/// Values of the 32-bit words of a stream: entry i is made of half i mod 2 (the low one first) of
/// draw position + i / 2 of the Stream with this key, wrapping around after draw 2^64 - 1.
struct RandomFill {
  std::uint64_t key = 0;
  std::uint64_t position = 0;
  float* out = nullptr;
  std::size_t count = 0;
};

/// The normal quantile of p = y / 2^32 for y in [1/2, 2^31), as a polynomial for each octave: with
/// y = 2^(octave - 1) (3/2 + x) and |x| <= 1/2,
///     z = c_0 + x (c_1 + x (c_2 + ...)),  c_i = coefficients[i][octave],
/// by fused multiply-adds from the last coefficient on.
struct NormalTable {
  static constexpr std::size_t octaves = 32, terms = 7;
  alignas(64) float coefficients[terms][octaves];
};

/// The largest float below 2^31, which is as far as the octaves go; larger y count as this.
constexpr float normal_y_max = 0x1.fffffep30f;

struct RandomFills {
  void (*uniform)(const RandomFill& fill);
  void (*normal)(const RandomFill& fill, const NormalTable& table);
  void (*log_normal)(const RandomFill& fill, const NormalTable& table, float sigma);
  void (*gumbel)(const RandomFill& fill);
};

}  // namespace ballast::kernels
