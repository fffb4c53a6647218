#include <algorithm>
#include <bit>
#include <cmath>

#include "core/arithmetic/functions.h"
#include "core/kernels/random_fills.h"
#include "core/random/stream.h"

namespace ballast::kernels {
namespace {

/// out[i] = value(word i).
template <class Value>
void fill_with(const RandomFill& fill, Value value) {
  Stream stream(fill.key);
  stream.seek(fill.position);
  for (std::size_t i = 0; i < fill.count; i += 2) {
    const std::uint64_t draw = stream();
    fill.out[i] = value(static_cast<std::uint32_t>(draw));
    if (i + 1 < fill.count) fill.out[i + 1] = value(static_cast<std::uint32_t>(draw >> 32));
  }
}

float uniform_of(std::uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

float normal_of(std::uint32_t word, const NormalTable& table) {
  const auto half = static_cast<std::int32_t>(word & 0x7fffffff);
  const float y = std::min(static_cast<float>(half) + 0.5f, normal_y_max);
  const auto bits = std::bit_cast<std::uint32_t>(y);
  const std::uint32_t octave = (bits >> 23) - 126;
  const float x = std::bit_cast<float>((bits & 0x7fffff) | 0x3f800000) - 1.5f;
  float z = table.coefficients[NormalTable::terms - 1][octave];
  for (std::size_t i = NormalTable::terms - 1; i-- > 0;) {
    z = std::fma(z, x, table.coefficients[i][octave]);
  }
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(z) ^ (word & 0x80000000));
}

float gumbel_of(std::uint32_t word) {
  const float u = (static_cast<float>(word >> 9) + 0.5f) * 0x1p-23f;
  return -arithmetic::log(-arithmetic::log(u));
}

}  // namespace

namespace scalar {

void fill_uniform(const RandomFill& fill) {
  fill_with(fill, uniform_of);
}

void fill_normal(const RandomFill& fill, const NormalTable& table) {
  fill_with(fill, [&](std::uint32_t word) { return normal_of(word, table); });
}

void fill_log_normal(const RandomFill& fill, const NormalTable& table, float sigma) {
  fill_with(fill,
            [&](std::uint32_t word) { return arithmetic::exp(sigma * normal_of(word, table)); });
}

void fill_gumbel(const RandomFill& fill) {
  fill_with(fill, gumbel_of);
}

}  // namespace scalar

}  // namespace ballast::kernels
