#include "tests/bench/machine_limits.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cmath>
#include <cstdint>

namespace ballast::bench {
namespace {

constexpr std::size_t chains = 10;  ///< more than the latency times the number of units

#if defined(__x86_64__)
// Ten registers by name: in an array they would go through memory.
#define BALLAST_TEN(vector, constraint)                                                            \
  vector a = one, b = one, c = one, d = one, e = one, f = one, g = one, h = one, i = one, j = one; \
  for (std::size_t round = 0; round < rounds; ++round) {                                           \
    __asm__ volatile(                                                                              \
        "vfmadd213ps %10, %10, %0\n vfmadd213ps %10, %10, %1\n vfmadd213ps %10, %10, %2\n"         \
        "vfmadd213ps %10, %10, %3\n vfmadd213ps %10, %10, %4\n vfmadd213ps %10, %10, %5\n"         \
        "vfmadd213ps %10, %10, %6\n vfmadd213ps %10, %10, %7\n vfmadd213ps %10, %10, %8\n"         \
        "vfmadd213ps %10, %10, %9\n"                                                               \
        : "+" constraint(a), "+" constraint(b), "+" constraint(c), "+" constraint(d),              \
          "+" constraint(e), "+" constraint(f), "+" constraint(g), "+" constraint(h),              \
          "+" constraint(i), "+" constraint(j)                                                     \
        : constraint(factor));                                                                     \
  }

__attribute__((target("avx512f"))) double wide(std::size_t rounds) {
  const __m512 one = _mm512_set1_ps(1.0f), factor = _mm512_set1_ps(0.99f);
  BALLAST_TEN(__m512, "v")
  return static_cast<double>(rounds) * chains * 32.0;
}

double narrow(std::size_t rounds) {
  const __m256 one = _mm256_set1_ps(1.0f), factor = _mm256_set1_ps(0.99f);
  BALLAST_TEN(__m256, "x")
  return static_cast<double>(rounds) * chains * 16.0;
}
#undef BALLAST_TEN
#endif

}  // namespace

double fused_multiply_adds(std::size_t rounds) {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") ? wide(rounds) : narrow(rounds);
#else
  float x[chains] = {};
  for (std::size_t i = 0; i < rounds; ++i) {
    for (float& each : x) each = std::fma(each, 0.99f, 0.99f);
  }
  return static_cast<double>(rounds) * chains * 2.0 + (x[0] < 0.0f ? 1.0 : 0.0);
#endif
}

float read_all(std::span<const float> values) {
  constexpr std::size_t lanes = 64;
  float sums[lanes] = {};
  for (std::size_t i = 0; i + lanes <= values.size(); i += lanes) {
    for (std::size_t l = 0; l < lanes; ++l) sums[l] += values[i + l];
  }
  return sums[0] + sums[lanes / 2];
}

void increment_counters(std::size_t increments) {
  constexpr std::size_t counters = 8192, places_at_once = 2048;
  static std::uint16_t counts[counters];
  static std::int32_t places[places_at_once];
  for (std::size_t i = 0; i < places_at_once; ++i)
    places[i] = static_cast<std::int32_t>((i * 4099) % counters);
  for (std::size_t done = 0; done < increments; done += places_at_once) {
    for (const std::int32_t place : places) ++counts[static_cast<std::uint32_t>(place)];
    __asm__ volatile("" : : : "memory");  // so that compilers do not add up several rounds
  }
}

}  // namespace ballast::bench
