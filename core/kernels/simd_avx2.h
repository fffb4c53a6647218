#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

/// The same operations as in simd_avx512.h, on 8 lanes of AVX2.
namespace ballast::kernels::avx2 {

#define BALLAST_SIMD [[gnu::always_inline]] static inline

constexpr std::size_t W = 8;
constexpr std::size_t SIGMOIDS_AT_ONCE = 2;
using F = __m256;
using I = __m256i;
/// A lane of it is all ones or all zeros. A struct, so that it cannot be taken for numbers.
struct M {
  __m256 lanes;
};

BALLAST_SIMD F set(float x) {
  return _mm256_set1_ps(x);
}
BALLAST_SIMD I iset(std::int32_t x) {
  return _mm256_set1_epi32(x);
}
BALLAST_SIMD I lane_numbers() {
  return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
}

BALLAST_SIMD I first_lane_bits(std::size_t n) {
  return _mm256_cmpgt_epi32(iset(static_cast<std::int32_t>(n)), lane_numbers());
}
BALLAST_SIMD M first_lanes(std::size_t n) {
  return {_mm256_castsi256_ps(first_lane_bits(n))};
}
BALLAST_SIMD F load(const float* p) {
  return _mm256_loadu_ps(p);
}
BALLAST_SIMD F load(const float* p, std::size_t n) {
  return _mm256_maskload_ps(p, first_lane_bits(n));
}
BALLAST_SIMD void store(float* p, F x) {
  _mm256_storeu_ps(p, x);
}
BALLAST_SIMD void store(float* p, F x, std::size_t n) {
  _mm256_maskstore_ps(p, first_lane_bits(n), x);
}
BALLAST_SIMD I iload(const std::int32_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const I*>(p));
}
BALLAST_SIMD void istore(std::int32_t* p, I x) {
  _mm256_storeu_si256(reinterpret_cast<I*>(p), x);
}
BALLAST_SIMD I iload(const std::int32_t* p, std::size_t n) {
  return _mm256_maskload_epi32(p, first_lane_bits(n));
}
BALLAST_SIMD void istore(std::int32_t* p, I x, std::size_t n) {
  _mm256_maskstore_epi32(p, first_lane_bits(n), x);
}
BALLAST_SIMD F gather(const float* base, I index) {
  return _mm256_i32gather_ps(base, index, 4);
}

BALLAST_SIMD F fma(F a, F b, F c) {
  return _mm256_fmadd_ps(a, b, c);
}
BALLAST_SIMD F fnma(F a, F b, F c) {
  return _mm256_fnmadd_ps(a, b, c);
}
BALLAST_SIMD F max(F a, F b) {
  return _mm256_max_ps(a, b);
}
BALLAST_SIMD F min(F a, F b) {
  return _mm256_min_ps(a, b);
}
BALLAST_SIMD I imax(I a, I b) {
  return _mm256_max_epi32(a, b);
}
BALLAST_SIMD I imin(I a, I b) {
  return _mm256_min_epi32(a, b);
}
BALLAST_SIMD std::int32_t sum_lanes(I a) {
  __m128i x = _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
  x = _mm_add_epi32(x, _mm_shuffle_epi32(x, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(x, _mm_shuffle_epi32(x, 0xb1)));
}
BALLAST_SIMD F square_root(F a) {
  return _mm256_sqrt_ps(a);
}
BALLAST_SIMD F absolute(F a) {
  return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}
BALLAST_SIMD F negative_absolute(F a) {
  return _mm256_or_ps(a, _mm256_set1_ps(-0.0f));
}

BALLAST_SIMD M lt(F a, F b) {
  return {_mm256_cmp_ps(a, b, _CMP_LT_OQ)};
}
BALLAST_SIMD M le(F a, F b) {
  return {_mm256_cmp_ps(a, b, _CMP_LE_OQ)};
}
BALLAST_SIMD M gt(F a, F b) {
  return {_mm256_cmp_ps(a, b, _CMP_GT_OQ)};
}
BALLAST_SIMD M ge(F a, F b) {
  return {_mm256_cmp_ps(a, b, _CMP_GE_OQ)};
}
BALLAST_SIMD M not_ge(F a, F b) {
  return {_mm256_cmp_ps(a, b, _CMP_NGE_UQ)};
}
BALLAST_SIMD M not_lt(F a, F b) {
  return {_mm256_cmp_ps(a, b, _CMP_NLT_UQ)};
}
BALLAST_SIMD M not_gt(F a, F b) {
  return {_mm256_cmp_ps(a, b, _CMP_NGT_UQ)};
}
BALLAST_SIMD M is_nan(F a) {
  return {_mm256_cmp_ps(a, a, _CMP_UNORD_Q)};
}
BALLAST_SIMD M igt(I a, I b) {
  return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(a, b))};
}
BALLAST_SIMD M ieq(I a, I b) {
  return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b))};
}
BALLAST_SIMD M all_lanes() {
  return {_mm256_castsi256_ps(iset(-1))};
}
BALLAST_SIMD M both(M a, M b) {
  return {_mm256_and_ps(a.lanes, b.lanes)};
}
BALLAST_SIMD M either(M a, M b) {
  return {_mm256_or_ps(a.lanes, b.lanes)};
}
BALLAST_SIMD M inverted(M a) {
  return {_mm256_andnot_ps(a.lanes, all_lanes().lanes)};
}
BALLAST_SIMD unsigned bits(M a) {
  return static_cast<unsigned>(_mm256_movemask_ps(a.lanes));
}
BALLAST_SIMD unsigned count(M a) {
  return static_cast<unsigned>(_mm_popcnt_u32(bits(a)));
}
BALLAST_SIMD bool all(M a) {
  return bits(a) == 0xff;
}
BALLAST_SIMD bool any(M a) {
  return bits(a) != 0;
}

BALLAST_SIMD F pick(M m, F yes, F no) {
  return _mm256_blendv_ps(no, yes, m.lanes);
}
BALLAST_SIMD I pick(M m, I yes, I no) {
  return _mm256_blendv_epi8(no, yes, _mm256_castps_si256(m.lanes));
}
BALLAST_SIMD I one_more(I a, M m) {
  return _mm256_sub_epi32(a, _mm256_castps_si256(m.lanes));
}
BALLAST_SIMD I iadd(I a, I b) {
  return _mm256_add_epi32(a, b);
}
BALLAST_SIMD I isub(I a, I b) {
  return _mm256_sub_epi32(a, b);
}
BALLAST_SIMD I imul(I a, I b) {
  return _mm256_mullo_epi32(a, b);
}
BALLAST_SIMD I shift_to_exponent(I a) {
  return _mm256_slli_epi32(a, 23);
}
BALLAST_SIMD I as_bits(F a) {
  return _mm256_castps_si256(a);
}
BALLAST_SIMD F as_float(I a) {
  return _mm256_castsi256_ps(a);
}
BALLAST_SIMD I truncate(F a) {
  return _mm256_cvttps_epi32(a);
}
BALLAST_SIMD I truncate_marking_nan(F a) {
  return truncate(a);
}
BALLAST_SIMD F to_float(I a) {
  return _mm256_cvtepi32_ps(a);
}
BALLAST_SIMD F inverse_estimate(F x) {
  return _mm256_rcp_ps(x);
}

/// The lanes of a mask in front: pdep and pext (BMI2) move one byte, the number of a lane, for each
/// bit.
BALLAST_SIMD I lanes_in_front(unsigned mask) {
  const std::uint64_t bytes = _pdep_u64(mask, 0x0101010101010101u) * 0xff;
  const std::uint64_t numbers = _pext_u64(0x0706050403020100u, bytes);
  return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(numbers)));
}
BALLAST_SIMD unsigned compress(M m, F x, float* to) {
  const unsigned mask = bits(m);
  store(to, _mm256_permutevar8x32_ps(x, lanes_in_front(mask)));
  return static_cast<unsigned>(_mm_popcnt_u32(mask));
}
BALLAST_SIMD unsigned compress(M m, I x, std::int32_t* to) {
  const unsigned mask = bits(m);
  istore(to, _mm256_permutevar8x32_epi32(x, lanes_in_front(mask)));
  return static_cast<unsigned>(_mm_popcnt_u32(mask));
}

BALLAST_SIMD void transpose(F (&r)[W]) {
  F a[W], b[W];
  for (std::size_t i = 0; i < W; i += 2) {
    a[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    a[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (std::size_t i = 0; i < W; i += 4) {
    b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
    b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xee);
    b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
    b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xee);
  }
  for (std::size_t i = 0; i < 4; ++i) {
    r[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
    r[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
  }
}

/// Not for this width: its transpose takes 8 columns.
BALLAST_SIMD void load_8_columns(const float*, std::size_t, F (&)[W]) {}

BALLAST_SIMD void interleave(F a, F b, F& front, F& back) {
  const F low = _mm256_unpacklo_ps(a, b), high = _mm256_unpackhi_ps(a, b);
  front = _mm256_permute2f128_ps(low, high, 0x20);
  back = _mm256_permute2f128_ps(low, high, 0x31);
}

constexpr std::size_t PHILOX_AT_ONCE = 2;
constexpr std::size_t VALUES_AT_ONCE = 2;

template <int places>
BALLAST_SIMD I ishift_right(I a) {
  return _mm256_srli_epi32(a, places);
}
BALLAST_SIMD I iand(I a, I b) {
  return _mm256_and_si256(a, b);
}
BALLAST_SIMD I ior(I a, I b) {
  return _mm256_or_si256(a, b);
}
BALLAST_SIMD I ixor(I a, I b) {
  return _mm256_xor_si256(a, b);
}
BALLAST_SIMD I xor_of(I a, I b, I c) {
  return _mm256_xor_si256(_mm256_xor_si256(a, c), b);
}
BALLAST_SIMD F negated(F a) {
  return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f));
}
BALLAST_SIMD F permute(F table, I index) {
  return _mm256_permutevar8x32_ps(table, index);
}
BALLAST_SIMD I wide_counters(std::uint64_t first) {
  return _mm256_add_epi64(_mm256_set1_epi64x(static_cast<long long>(first)),
                          _mm256_setr_epi64x(0, 2, 1, 3));
}
BALLAST_SIMD I wide_and(I a, std::uint64_t mask) {
  return _mm256_and_si256(a, _mm256_set1_epi64x(static_cast<long long>(mask)));
}
BALLAST_SIMD I wide_high(I a) {
  return _mm256_srli_epi64(a, 32);
}
BALLAST_SIMD I wide_product(I a, I b) {
  return _mm256_mul_epu32(a, b);
}
BALLAST_SIMD I low_halves(I a, I b) {
  return _mm256_blend_epi32(a, _mm256_slli_epi64(b, 32), 0xaa);
}
BALLAST_SIMD void wide_interleave(I a, I b, I& front, I& back) {
  front = _mm256_unpacklo_epi64(a, b);
  back = _mm256_unpackhi_epi64(a, b);
}

// Products of matrices also take doubles.
constexpr std::size_t product_tile_rows = 6;       ///< two vectors each, of the 16 registers
constexpr std::size_t product_narrow_vectors = 2;  ///< of six rows, for narrow outputs
using D = __m256d;
BALLAST_SIMD D load(const double* p) {
  return _mm256_loadu_pd(p);
}
BALLAST_SIMD __m256i first_double_lane_bits(std::size_t n) {
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x(static_cast<long long>(n)),
                            _mm256_setr_epi64x(0, 1, 2, 3));
}
BALLAST_SIMD D load(const double* p, std::size_t n) {
  return _mm256_maskload_pd(p, first_double_lane_bits(n));
}
BALLAST_SIMD void store(double* p, D x) {
  _mm256_storeu_pd(p, x);
}
BALLAST_SIMD void store(double* p, D x, std::size_t n) {
  _mm256_maskstore_pd(p, first_double_lane_bits(n), x);
}
BALLAST_SIMD D fma(D a, D b, D c) {
  return _mm256_fmadd_pd(a, b, c);
}
BALLAST_SIMD void widen(F x, D& front, D& back) {
  front = _mm256_cvtps_pd(_mm256_castps256_ps128(x));
  back = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
}

}  // namespace ballast::kernels::avx2
