#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

/// The vector operations that kernels.inc is written in, on 16 lanes of AVX-512. All are exact to
/// the bit on every target, so results do not depend on which one runs.
namespace ballast::kernels::avx512 {

#define BALLAST_SIMD [[gnu::always_inline]] static inline

constexpr std::size_t W = 16;  ///< lanes
constexpr std::size_t SIGMOIDS_AT_ONCE = 2;
using F = __m512;
using I = __m512i;
using M = __mmask16;

BALLAST_SIMD F set(float x) {
  return _mm512_set1_ps(x);
}
BALLAST_SIMD I iset(std::int32_t x) {
  return _mm512_set1_epi32(x);
}
BALLAST_SIMD I lane_numbers() {
  return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

BALLAST_SIMD M first_lanes(std::size_t n) {
  return static_cast<M>((1u << n) - 1u);
}
BALLAST_SIMD F load(const float* p) {
  return _mm512_loadu_ps(p);
}
BALLAST_SIMD F load(const float* p, std::size_t n) {
  return _mm512_maskz_loadu_ps(first_lanes(n), p);
}
BALLAST_SIMD void store(float* p, F x) {
  _mm512_storeu_ps(p, x);
}
BALLAST_SIMD void store(float* p, F x, std::size_t n) {
  _mm512_mask_storeu_ps(p, first_lanes(n), x);
}
BALLAST_SIMD I iload(const std::int32_t* p) {
  return _mm512_loadu_si512(p);
}
BALLAST_SIMD void istore(std::int32_t* p, I x) {
  _mm512_storeu_si512(p, x);
}
BALLAST_SIMD I iload(const std::int32_t* p, std::size_t n) {
  return _mm512_maskz_loadu_epi32(first_lanes(n), p);
}
BALLAST_SIMD void istore(std::int32_t* p, I x, std::size_t n) {
  _mm512_mask_storeu_epi32(p, first_lanes(n), x);
}
BALLAST_SIMD F gather(const float* base, I index) {
  return _mm512_i32gather_ps(index, base, 4);
}

BALLAST_SIMD F fma(F a, F b, F c) {
  return _mm512_fmadd_ps(a, b, c);
}
BALLAST_SIMD F fnma(F a, F b, F c) {
  return _mm512_fnmadd_ps(a, b, c);
}  ///< c - a b
BALLAST_SIMD F max(F a, F b) {
  return _mm512_max_ps(a, b);
}  ///< of numbers, for which the zero is of no account
BALLAST_SIMD F min(F a, F b) {
  return _mm512_min_ps(a, b);
}
BALLAST_SIMD I imax(I a, I b) {
  return _mm512_max_epi32(a, b);
}
BALLAST_SIMD I imin(I a, I b) {
  return _mm512_min_epi32(a, b);
}
BALLAST_SIMD std::int32_t sum_lanes(I a) {
  return _mm512_reduce_add_epi32(a);
}
BALLAST_SIMD F square_root(F a) {
  return _mm512_sqrt_ps(a);
}
BALLAST_SIMD F absolute(F a) {
  return _mm512_abs_ps(a);
}
BALLAST_SIMD F negative_absolute(F a) {
  return _mm512_or_ps(a, _mm512_set1_ps(-0.0f));
}

BALLAST_SIMD M lt(F a, F b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}
BALLAST_SIMD M le(F a, F b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ);
}
BALLAST_SIMD M gt(F a, F b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}
BALLAST_SIMD M ge(F a, F b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ);
}
BALLAST_SIMD M not_ge(F a, F b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_NGE_UQ);
}  ///< true with a NaN
BALLAST_SIMD M not_lt(F a, F b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ);
}
BALLAST_SIMD M not_gt(F a, F b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_NGT_UQ);
}
BALLAST_SIMD M is_nan(F a) {
  return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
}
BALLAST_SIMD M igt(I a, I b) {
  return _mm512_cmpgt_epi32_mask(a, b);
}
BALLAST_SIMD M ieq(I a, I b) {
  return _mm512_cmpeq_epi32_mask(a, b);
}
BALLAST_SIMD M all_lanes() {
  return 0xffff;
}
BALLAST_SIMD M both(M a, M b) {
  return static_cast<M>(a & b);
}
BALLAST_SIMD M either(M a, M b) {
  return static_cast<M>(a | b);
}
BALLAST_SIMD M inverted(M a) {
  return static_cast<M>(~a);
}
BALLAST_SIMD unsigned bits(M a) {
  return a;
}
BALLAST_SIMD unsigned count(M a) {
  return static_cast<unsigned>(_mm_popcnt_u32(a));
}
BALLAST_SIMD bool all(M a) {
  return a == 0xffff;
}
BALLAST_SIMD bool any(M a) {
  return a != 0;
}

BALLAST_SIMD F pick(M m, F yes, F no) {
  return _mm512_mask_mov_ps(no, m, yes);
}
BALLAST_SIMD I pick(M m, I yes, I no) {
  return _mm512_mask_mov_epi32(no, m, yes);
}
BALLAST_SIMD I one_more(I a, M m) {
  return _mm512_mask_sub_epi32(a, m, a, _mm512_set1_epi32(-1));
}
BALLAST_SIMD I iadd(I a, I b) {
  return _mm512_add_epi32(a, b);
}
BALLAST_SIMD I isub(I a, I b) {
  return _mm512_sub_epi32(a, b);
}
BALLAST_SIMD I imul(I a, I b) {
  return _mm512_mullo_epi32(a, b);
}
BALLAST_SIMD I shift_to_exponent(I a) {
  return _mm512_slli_epi32(a, 23);
}
BALLAST_SIMD I as_bits(F a) {
  return _mm512_castps_si512(a);
}
BALLAST_SIMD F as_float(I a) {
  return _mm512_castsi512_ps(a);
}
BALLAST_SIMD I truncate(F a) {
  return _mm512_cvttps_epi32(a);
}
/// NaN becomes a negative number.
BALLAST_SIMD I truncate_marking_nan(F a) {
  return truncate(a);
}
BALLAST_SIMD F to_float(I a) {
  return _mm512_cvtepi32_ps(a);
}
/// 1 / x but for one part in 1000 of it.
BALLAST_SIMD F inverse_estimate(F x) {
  return _mm512_rcp14_ps(x);
}

/// Writes the lanes of the mask one after the other, and anything behind them, W in all; returns
/// their number.
BALLAST_SIMD unsigned compress(M m, F x, float* to) {
  _mm512_storeu_ps(to, _mm512_maskz_compress_ps(m, x));
  return count(m);
}
BALLAST_SIMD unsigned compress(M m, I x, std::int32_t* to) {
  _mm512_storeu_si512(to, _mm512_maskz_compress_epi32(m, x));
  return count(m);
}

/// Rows become columns.
BALLAST_SIMD void transpose(F (&r)[W]) {
  F a[W], b[W];
  for (std::size_t i = 0; i < W; i += 2) {
    a[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
    a[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
  }
  for (std::size_t i = 0; i < W; i += 4) {
    b[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a[i]), _mm512_castps_pd(a[i + 2])));
    b[i + 1] =
        _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a[i]), _mm512_castps_pd(a[i + 2])));
    b[i + 2] = _mm512_castpd_ps(
        _mm512_unpacklo_pd(_mm512_castps_pd(a[i + 1]), _mm512_castps_pd(a[i + 3])));
    b[i + 3] = _mm512_castpd_ps(
        _mm512_unpackhi_pd(_mm512_castps_pd(a[i + 1]), _mm512_castps_pd(a[i + 3])));
  }
  for (std::size_t i = 0; i < 4; ++i) {
    a[i] = _mm512_shuffle_f32x4(b[i], b[i + 4], 0x88);
    a[i + 4] = _mm512_shuffle_f32x4(b[i], b[i + 4], 0xdd);
    a[i + 8] = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0x88);
    a[i + 12] = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0xdd);
  }
  for (std::size_t i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_f32x4(a[i], a[i + 8], 0x88);
    r[i + 4] = _mm512_shuffle_f32x4(a[i + 4], a[i + 12], 0x88);
    r[i + 8] = _mm512_shuffle_f32x4(a[i], a[i + 8], 0xdd);
    r[i + 12] = _mm512_shuffle_f32x4(a[i + 4], a[i + 12], 0xdd);
  }
}

/// Columns of 16 rows of 8 values; the vectors behind them are left as they are.
BALLAST_SIMD void load_8_columns(const float* p, std::size_t stride, F (&columns)[W]) {
  F a[8], b[8];
  for (std::size_t i = 0; i < 8; ++i) {
    const float* const row = p + (i % 4 + i / 4 * 8) * stride;  // and the row 4 below it
    a[i] = _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(row)),
                              _mm256_loadu_ps(row + 4 * stride), 1);
  }
  for (std::size_t i = 0; i < 8; i += 2) {
    b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
    b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
  }
  for (std::size_t i = 0; i < 8; i += 4) {
    a[i] = _mm512_shuffle_ps(b[i], b[i + 2], 0x44);
    a[i + 1] = _mm512_shuffle_ps(b[i], b[i + 2], 0xee);
    a[i + 2] = _mm512_shuffle_ps(b[i + 1], b[i + 3], 0x44);
    a[i + 3] = _mm512_shuffle_ps(b[i + 1], b[i + 3], 0xee);
  }
  for (std::size_t i = 0; i < 4; ++i) {
    columns[i] = _mm512_shuffle_f32x4(a[i], a[i + 4], 0x88);
    columns[i + 4] = _mm512_shuffle_f32x4(a[i], a[i + 4], 0xdd);
  }
}

/// a0 b0 a1 b1 ...
BALLAST_SIMD void interleave(F a, F b, F& front, F& back) {
  const I first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  front = _mm512_permutex2var_ps(a, first, b);
  back = _mm512_permutex2var_ps(a, _mm512_add_epi32(first, _mm512_set1_epi32(8)), b);
}

// For random words: lanes of 32 bits, and lanes of 64 bits of which a product takes the low halves.

constexpr std::size_t PHILOX_AT_ONCE = 4;
constexpr std::size_t VALUES_AT_ONCE = 4;

template <int places>
BALLAST_SIMD I ishift_right(I a) {
  return _mm512_srli_epi32(a, places);
}
BALLAST_SIMD I iand(I a, I b) {
  return _mm512_and_si512(a, b);
}
BALLAST_SIMD I ior(I a, I b) {
  return _mm512_or_si512(a, b);
}
BALLAST_SIMD I ixor(I a, I b) {
  return _mm512_xor_si512(a, b);
}
BALLAST_SIMD I xor_of(I a, I b, I c) {
  return _mm512_ternarylogic_epi32(a, b, c, 0x96);
}
BALLAST_SIMD F negated(F a) {
  return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f));
}
/// The lanes of a table of W values that the low bits of the index name.
BALLAST_SIMD F permute(F table, I index) {
  return _mm512_permutexvar_ps(index, table);
}
/// first, first + 1, ..., in the order that wide_interleave puts right.
BALLAST_SIMD I wide_counters(std::uint64_t first) {
  return _mm512_add_epi64(_mm512_set1_epi64(static_cast<long long>(first)),
                          _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7));
}
BALLAST_SIMD I wide_and(I a, std::uint64_t mask) {
  return _mm512_and_si512(a, _mm512_set1_epi64(static_cast<long long>(mask)));
}
BALLAST_SIMD I wide_high(I a) {
  return _mm512_srli_epi64(a, 32);
}
BALLAST_SIMD I wide_product(I a, I b) {
  return _mm512_mul_epu32(a, b);
}
/// The low halves of both: a0 b0 a1 b1 ...
BALLAST_SIMD I low_halves(I a, I b) {
  return _mm512_mask_shuffle_epi32(a, 0xaaaa, b, static_cast<_MM_PERM_ENUM>(0xa0));
}
/// Lanes of 64 bits: those of wide_counters in order, one of each in turn.
BALLAST_SIMD void wide_interleave(I a, I b, I& front, I& back) {
  front = _mm512_unpacklo_epi64(a, b);
  back = _mm512_unpackhi_epi64(a, b);
}

// Products of matrices also take doubles.
constexpr std::size_t product_tile_rows = 14;      ///< two vectors each, of the 32 registers
constexpr std::size_t product_narrow_vectors = 4;  ///< of six rows, for narrow outputs
using D = __m512d;
BALLAST_SIMD D load(const double* p) {
  return _mm512_loadu_pd(p);
}
BALLAST_SIMD D load(const double* p, std::size_t n) {
  return _mm512_maskz_loadu_pd(static_cast<__mmask8>(first_lanes(n)), p);
}
BALLAST_SIMD void store(double* p, D x) {
  _mm512_storeu_pd(p, x);
}
BALLAST_SIMD void store(double* p, D x, std::size_t n) {
  _mm512_mask_storeu_pd(p, static_cast<__mmask8>(first_lanes(n)), x);
}
BALLAST_SIMD D fma(D a, D b, D c) {
  return _mm512_fmadd_pd(a, b, c);
}
BALLAST_SIMD void widen(F x, D& front, D& back) {
  front = _mm512_cvtps_pd(_mm512_castps512_ps256(x));
  back = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
}

}  // namespace ballast::kernels::avx512
