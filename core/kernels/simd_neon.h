#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

/// The same operations as in simd_avx512.h, on 8 lanes of arm64: two vectors of 4, side by side.
namespace ballast::kernels::neon {

#define BALLAST_SIMD [[gnu::always_inline]] static inline

constexpr std::size_t W = 8;
constexpr std::size_t SIGMOIDS_AT_ONCE = 2;
struct F {
  float32x4_t low, high;
};
struct I {
  int32x4_t low, high;
};
/// A lane of it is all ones or all zeros.
struct M {
  uint32x4_t low, high;
};

BALLAST_SIMD F set(float x) {
  return {vdupq_n_f32(x), vdupq_n_f32(x)};
}
BALLAST_SIMD I iset(std::int32_t x) {
  return {vdupq_n_s32(x), vdupq_n_s32(x)};
}
BALLAST_SIMD I lane_numbers() {
  return {int32x4_t{0, 1, 2, 3}, int32x4_t{4, 5, 6, 7}};
}

BALLAST_SIMD M igt(I a, I b) {
  return {vcgtq_s32(a.low, b.low), vcgtq_s32(a.high, b.high)};
}
BALLAST_SIMD M ieq(I a, I b) {
  return {vceqq_s32(a.low, b.low), vceqq_s32(a.high, b.high)};
}
BALLAST_SIMD M first_lanes(std::size_t n) {
  return igt(iset(static_cast<std::int32_t>(n)), lane_numbers());
}
/// What a vector has of a place with `n` values: zeros behind them. No instruction passes over
/// memory; these are not inlined, so that the loops around them stay small.
template <class Value, class Vector>
[[gnu::noinline]] static Vector load_some(const Value* p, std::size_t n) {
  constexpr std::size_t lanes = sizeof(Vector) / sizeof(Value);
  Value values[lanes];
  for (std::size_t l = 0; l < lanes; ++l) values[l] = l < n ? p[l] : Value(0);
  Vector x;
  __builtin_memcpy(&x, values, sizeof x);
  return x;
}
template <class Value, class Vector>
[[gnu::noinline]] static void store_some(Value* p, Vector x, std::size_t n) {
  Value values[sizeof(Vector) / sizeof(Value)];
  __builtin_memcpy(values, &x, sizeof x);
  for (std::size_t l = 0; l < n; ++l) p[l] = values[l];
}
BALLAST_SIMD F load(const float* p) {
  return {vld1q_f32(p), vld1q_f32(p + 4)};
}
BALLAST_SIMD F load(const float* p, std::size_t n) {
  return n >= W ? load(p) : load_some<float, F>(p, n);
}
BALLAST_SIMD void store(float* p, F x) {
  vst1q_f32(p, x.low);
  vst1q_f32(p + 4, x.high);
}
BALLAST_SIMD void store(float* p, F x, std::size_t n) {
  if (n >= W)
    store(p, x);
  else
    store_some(p, x, n);
}
BALLAST_SIMD I iload(const std::int32_t* p) {
  return {vld1q_s32(p), vld1q_s32(p + 4)};
}
BALLAST_SIMD void istore(std::int32_t* p, I x) {
  vst1q_s32(p, x.low);
  vst1q_s32(p + 4, x.high);
}
BALLAST_SIMD I iload(const std::int32_t* p, std::size_t n) {
  return n >= W ? iload(p) : load_some<std::int32_t, I>(p, n);
}
BALLAST_SIMD void istore(std::int32_t* p, I x, std::size_t n) {
  if (n >= W)
    istore(p, x);
  else
    store_some(p, x, n);
}
BALLAST_SIMD float32x4_t gather(const float* base, int32x4_t index) {
  return float32x4_t{base[index[0]], base[index[1]], base[index[2]], base[index[3]]};
}
BALLAST_SIMD F gather(const float* base, I index) {
  return {gather(base, index.low), gather(base, index.high)};
}

BALLAST_SIMD F operator+(F a, F b) {
  return {vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)};
}
BALLAST_SIMD F operator-(F a, F b) {
  return {vsubq_f32(a.low, b.low), vsubq_f32(a.high, b.high)};
}
BALLAST_SIMD F operator-(float a, F b) {
  return set(a) - b;
}
BALLAST_SIMD F operator*(F a, F b) {
  return {vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)};
}
BALLAST_SIMD F operator/(F a, F b) {
  return {vdivq_f32(a.low, b.low), vdivq_f32(a.high, b.high)};
}
BALLAST_SIMD F fma(F a, F b, F c) {
  return {vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high)};
}
BALLAST_SIMD F fnma(F a, F b, F c) {
  return {vfmsq_f32(c.low, a.low, b.low), vfmsq_f32(c.high, a.high, b.high)};
}
BALLAST_SIMD I imax(I a, I b) {
  return {vmaxq_s32(a.low, b.low), vmaxq_s32(a.high, b.high)};
}
BALLAST_SIMD I imin(I a, I b) {
  return {vminq_s32(a.low, b.low), vminq_s32(a.high, b.high)};
}
BALLAST_SIMD std::int32_t sum_lanes(I a) {
  return vaddvq_s32(vaddq_s32(a.low, a.high));
}
BALLAST_SIMD F square_root(F a) {
  return {vsqrtq_f32(a.low), vsqrtq_f32(a.high)};
}
BALLAST_SIMD F absolute(F a) {
  return {vabsq_f32(a.low), vabsq_f32(a.high)};
}
BALLAST_SIMD I as_bits(F a) {
  return {vreinterpretq_s32_f32(a.low), vreinterpretq_s32_f32(a.high)};
}
BALLAST_SIMD F as_float(I a) {
  return {vreinterpretq_f32_s32(a.low), vreinterpretq_f32_s32(a.high)};
}
BALLAST_SIMD I iand(I a, I b) {
  return {vandq_s32(a.low, b.low), vandq_s32(a.high, b.high)};
}
BALLAST_SIMD I ior(I a, I b) {
  return {vorrq_s32(a.low, b.low), vorrq_s32(a.high, b.high)};
}
BALLAST_SIMD I ixor(I a, I b) {
  return {veorq_s32(a.low, b.low), veorq_s32(a.high, b.high)};
}
BALLAST_SIMD F negative_absolute(F a) {
  return as_float(ior(as_bits(a), iset(INT32_MIN)));
}
BALLAST_SIMD F negated(F a) {
  return {vnegq_f32(a.low), vnegq_f32(a.high)};
}

BALLAST_SIMD M lt(F a, F b) {
  return {vcltq_f32(a.low, b.low), vcltq_f32(a.high, b.high)};
}
BALLAST_SIMD M le(F a, F b) {
  return {vcleq_f32(a.low, b.low), vcleq_f32(a.high, b.high)};
}
BALLAST_SIMD M gt(F a, F b) {
  return lt(b, a);
}
BALLAST_SIMD M ge(F a, F b) {
  return le(b, a);
}
BALLAST_SIMD M inverted(M a) {
  return {vmvnq_u32(a.low), vmvnq_u32(a.high)};
}
BALLAST_SIMD M not_ge(F a, F b) {
  return inverted(ge(a, b));
}
BALLAST_SIMD M not_lt(F a, F b) {
  return inverted(lt(a, b));
}
BALLAST_SIMD M not_gt(F a, F b) {
  return inverted(gt(a, b));
}
BALLAST_SIMD M is_nan(F a) {
  return inverted({vceqq_f32(a.low, a.low), vceqq_f32(a.high, a.high)});
}
BALLAST_SIMD M all_lanes() {
  return {vdupq_n_u32(UINT32_MAX), vdupq_n_u32(UINT32_MAX)};
}
BALLAST_SIMD M both(M a, M b) {
  return {vandq_u32(a.low, b.low), vandq_u32(a.high, b.high)};
}
BALLAST_SIMD M either(M a, M b) {
  return {vorrq_u32(a.low, b.low), vorrq_u32(a.high, b.high)};
}
BALLAST_SIMD unsigned bits(uint32x4_t a) {
  return vaddvq_u32(vandq_u32(a, uint32x4_t{1, 2, 4, 8}));
}
BALLAST_SIMD unsigned bits(M a) {
  return bits(a.low) | bits(a.high) << 4;
}
BALLAST_SIMD unsigned count(uint32x4_t a) {
  return 0u - vaddvq_u32(a);
}
BALLAST_SIMD unsigned count(M a) {
  return count(vaddq_u32(a.low, a.high));
}
BALLAST_SIMD bool all(M a) {
  return vminvq_u32(vandq_u32(a.low, a.high)) != 0;
}
BALLAST_SIMD bool any(M a) {
  return vmaxvq_u32(vorrq_u32(a.low, a.high)) != 0;
}

BALLAST_SIMD F pick(M m, F yes, F no) {
  return {vbslq_f32(m.low, yes.low, no.low), vbslq_f32(m.high, yes.high, no.high)};
}
BALLAST_SIMD I pick(M m, I yes, I no) {
  return {vbslq_s32(m.low, yes.low, no.low), vbslq_s32(m.high, yes.high, no.high)};
}
/// As on other targets the second one where one is NaN; vmaxq_f32 would give NaN.
BALLAST_SIMD F max(F a, F b) {
  return pick(gt(a, b), a, b);
}
BALLAST_SIMD F min(F a, F b) {
  return pick(lt(a, b), a, b);
}
BALLAST_SIMD I iadd(I a, I b) {
  return {vaddq_s32(a.low, b.low), vaddq_s32(a.high, b.high)};
}
BALLAST_SIMD I isub(I a, I b) {
  return {vsubq_s32(a.low, b.low), vsubq_s32(a.high, b.high)};
}
BALLAST_SIMD I imul(I a, I b) {
  return {vmulq_s32(a.low, b.low), vmulq_s32(a.high, b.high)};
}
BALLAST_SIMD I one_more(I a, M m) {
  return isub(a, {vreinterpretq_s32_u32(m.low), vreinterpretq_s32_u32(m.high)});
}
BALLAST_SIMD I shift_to_exponent(I a) {
  return {vshlq_n_s32(a.low, 23), vshlq_n_s32(a.high, 23)};
}
template <int places>
BALLAST_SIMD int32x4_t ishift_right(int32x4_t a) {
  return vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a), places));
}
template <int places>
BALLAST_SIMD I ishift_right(I a) {
  return {ishift_right<places>(a.low), ishift_right<places>(a.high)};
}
BALLAST_SIMD I truncate(F a) {
  return {vcvtq_s32_f32(a.low), vcvtq_s32_f32(a.high)};
}
BALLAST_SIMD I truncate_marking_nan(F a) {
  const M nan = is_nan(a);  // all ones, which is -1
  return ior(truncate(a), {vreinterpretq_s32_u32(nan.low), vreinterpretq_s32_u32(nan.high)});
}
BALLAST_SIMD F to_float(I a) {
  return {vcvtq_f32_s32(a.low), vcvtq_f32_s32(a.high)};
}
BALLAST_SIMD float32x4_t inverse_estimate(float32x4_t x) {
  const float32x4_t estimate = vrecpeq_f32(x);
  return vmulq_f32(estimate, vrecpsq_f32(x, estimate));
}
BALLAST_SIMD F inverse_estimate(F x) {
  return {inverse_estimate(x.low), inverse_estimate(x.high)};
}

/// For each mask of 4 lanes the bytes of those in it, in front.
struct LanesInFront {
  std::uint8_t bytes[16][16];
  constexpr LanesInFront() : bytes() {
    for (unsigned mask = 0; mask < 16; ++mask) {
      unsigned place = 0;
      for (unsigned byte = 0; byte < 16; ++byte) {
        if (mask >> byte / 4 & 1) bytes[mask][place++] = static_cast<std::uint8_t>(byte);
      }
    }
  }
};
constexpr LanesInFront lanes_in_front;
BALLAST_SIMD unsigned compress(M m, I x, std::int32_t* to) {
  const auto in_front = [](uint32x4_t mask, int32x4_t lanes) __attribute__((always_inline)) {
    const uint8x16_t places = vld1q_u8(lanes_in_front.bytes[bits(mask)]);
    return vreinterpretq_s32_u8(vqtbl1q_u8(vreinterpretq_u8_s32(lanes), places));
  };
  const unsigned in_low = count(m.low);
  vst1q_s32(to, in_front(m.low, x.low));
  vst1q_s32(to + in_low, in_front(m.high, x.high));
  return in_low + count(m.high);
}
BALLAST_SIMD unsigned compress(M m, F x, float* to) {
  const auto in_front = [](uint32x4_t mask, float32x4_t lanes) __attribute__((always_inline)) {
    const uint8x16_t places = vld1q_u8(lanes_in_front.bytes[bits(mask)]);
    return vreinterpretq_f32_u8(vqtbl1q_u8(vreinterpretq_u8_f32(lanes), places));
  };
  const unsigned in_low = count(m.low);
  vst1q_f32(to, in_front(m.low, x.low));
  vst1q_f32(to + in_low, in_front(m.high, x.high));
  return in_low + count(m.high);
}

BALLAST_SIMD void interleave(F a, F b, F& front, F& back) {
  front = {vzip1q_f32(a.low, b.low), vzip2q_f32(a.low, b.low)};
  back = {vzip1q_f32(a.high, b.high), vzip2q_f32(a.high, b.high)};
}
/// Interleaving row i with row i + 4, for all i, moves one bit of the number of the row to that of
/// the lane.
BALLAST_SIMD void transpose(F (&r)[W]) {
  F out[W];
  for (std::size_t bit = 1; bit < W; bit *= 2) {
    for (std::size_t i = 0; i < 4; ++i) interleave(r[i], r[i + 4], out[2 * i], out[2 * i + 1]);
    for (std::size_t i = 0; i < W; ++i) r[i] = out[i];
  }
}

/// Not for this width: its transpose takes 8 columns.
BALLAST_SIMD void load_8_columns(const float*, std::size_t, F (&)[W]) {}

constexpr std::size_t PHILOX_AT_ONCE = 2;
constexpr std::size_t VALUES_AT_ONCE = 2;

BALLAST_SIMD I xor_of(I a, I b, I c) {
  return ixor(ixor(a, c), b);
}
BALLAST_SIMD F permute(F table, I index) {
  const auto permuted = [&](int32x4_t lanes) __attribute__((always_inline)) {
    const uint8x16x2_t bytes = {vreinterpretq_u8_f32(table.low), vreinterpretq_u8_f32(table.high)};
    const uint32x4_t lane = vandq_u32(vreinterpretq_u32_s32(lanes), vdupq_n_u32(W - 1));
    const uint32x4_t places = vmlaq_u32(vdupq_n_u32(0x03020100), lane, vdupq_n_u32(0x04040404));
    return vreinterpretq_f32_u8(vqtbl2q_u8(bytes, vreinterpretq_u8_u32(places)));
  };
  return {permuted(index.low), permuted(index.high)};
}

BALLAST_SIMD uint64x2_t wide(int32x4_t a) {
  return vreinterpretq_u64_s32(a);
}
BALLAST_SIMD int32x4_t narrow(uint64x2_t a) {
  return vreinterpretq_s32_u64(a);
}
BALLAST_SIMD I wide_counters(std::uint64_t first) {
  return {narrow(uint64x2_t{first, first + 1}), narrow(uint64x2_t{first + 2, first + 3})};
}
BALLAST_SIMD I wide_and(I a, std::uint64_t mask) {
  return iand(a, {narrow(vdupq_n_u64(mask)), narrow(vdupq_n_u64(mask))});
}
BALLAST_SIMD I wide_high(I a) {
  return {narrow(vshrq_n_u64(wide(a.low), 32)), narrow(vshrq_n_u64(wide(a.high), 32))};
}
BALLAST_SIMD int32x4_t wide_product(int32x4_t a, int32x4_t b) {
  return narrow(vmull_u32(vmovn_u64(wide(a)), vmovn_u64(wide(b))));
}
BALLAST_SIMD I wide_product(I a, I b) {
  return {wide_product(a.low, b.low), wide_product(a.high, b.high)};
}
BALLAST_SIMD I low_halves(I a, I b) {
  return {vtrn1q_s32(a.low, b.low), vtrn1q_s32(a.high, b.high)};
}
BALLAST_SIMD void wide_interleave(I a, I b, I& front, I& back) {
  front = {narrow(vzip1q_u64(wide(a.low), wide(b.low))),
           narrow(vzip2q_u64(wide(a.low), wide(b.low)))};
  back = {narrow(vzip1q_u64(wide(a.high), wide(b.high))),
          narrow(vzip2q_u64(wide(a.high), wide(b.high)))};
}

// Products of matrices also take doubles.
constexpr std::size_t product_tile_rows = 6;       ///< four registers each, of 32
constexpr std::size_t product_narrow_vectors = 2;  ///< of six rows, for narrow outputs
struct D {
  float64x2_t low, high;
};
constexpr std::size_t double_lanes = W / 2;
BALLAST_SIMD D load(const double* p) {
  return {vld1q_f64(p), vld1q_f64(p + 2)};
}
BALLAST_SIMD D load(const double* p, std::size_t n) {
  return n >= double_lanes ? load(p) : load_some<double, D>(p, n);
}
BALLAST_SIMD void store(double* p, D x) {
  vst1q_f64(p, x.low);
  vst1q_f64(p + 2, x.high);
}
BALLAST_SIMD void store(double* p, D x, std::size_t n) {
  if (n >= double_lanes)
    store(p, x);
  else
    store_some(p, x, n);
}
BALLAST_SIMD D operator+(D a, D b) {
  return {vaddq_f64(a.low, b.low), vaddq_f64(a.high, b.high)};
}
BALLAST_SIMD D operator-(double a, D b) {
  return {vsubq_f64(vdupq_n_f64(a), b.low), vsubq_f64(vdupq_n_f64(a), b.high)};
}
BALLAST_SIMD D fma(D a, D b, D c) {
  return {vfmaq_f64(c.low, a.low, b.low), vfmaq_f64(c.high, a.high, b.high)};
}
BALLAST_SIMD void widen(F x, D& front, D& back) {
  front = {vcvt_f64_f32(vget_low_f32(x.low)), vcvt_high_f64_f32(x.low)};
  back = {vcvt_f64_f32(vget_low_f32(x.high)), vcvt_high_f64_f32(x.high)};
}

// What products.inc has for the compiler's own vectors.
BALLAST_SIMD F number_or(F x, F other) {
  return pick(is_nan(x), other, x);
}
BALLAST_SIMD D number_or(D x, D other) {
  return {vbslq_f64(vceqq_f64(x.low, x.low), x.low, other.low),
          vbslq_f64(vceqq_f64(x.high, x.high), x.high, other.high)};
}
BALLAST_SIMD void interleave_lanes(F a, F b, F& front, F& back) {
  interleave(a, b, front, back);
}
BALLAST_SIMD void interleave_lanes(D a, D b, D& front, D& back) {
  front = {vzip1q_f64(a.low, b.low), vzip2q_f64(a.low, b.low)};
  back = {vzip1q_f64(a.high, b.high), vzip2q_f64(a.high, b.high)};
}

}  // namespace ballast::kernels::neon
