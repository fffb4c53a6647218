#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#endif

/// The widest vectors of the processor the code is compiled for. Results never depend on the width:
/// lanes hold different outputs, and no operation mixes lanes.
namespace ballast::arithmetic {

#if defined(__AVX512F__)
inline constexpr std::size_t vector_bytes = 64;
#else
inline constexpr std::size_t vector_bytes = 32;
#endif

template <class Real>
struct VectorOf;
template <>
struct VectorOf<float> {
  using type __attribute__((vector_size(vector_bytes))) = float;
};
template <>
struct VectorOf<double> {
  using type __attribute__((vector_size(vector_bytes))) = double;
};
template <class Real>
using Vector = typename VectorOf<Real>::type;

template <class Real>
inline constexpr std::size_t lanes = vector_bytes / sizeof(Real);

template <class Real>
inline Vector<Real> load(const Real* from) {
  Vector<Real> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <class Real>
inline void store(const Vector<Real>& v, Real* to) {
  std::memcpy(to, &v, sizeof v);
}

/// x in all lanes.
template <class Real>
inline Vector<Real> broadcast(Real x) {
  return x - Vector<Real>{};
}

/// a * b + c, rounded once. Compilers offer no common spelling of it for vectors.
inline Vector<float> fused(const Vector<float>& a, const Vector<float>& b, const Vector<float>& c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX2__) && defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  Vector<float> out;
  for (std::size_t l = 0; l < lanes<float>; ++l) out[l] = std::fma(a[l], b[l], c[l]);
  return out;
#endif
}
inline Vector<double> fused(const Vector<double>& a, const Vector<double>& b,
                            const Vector<double>& c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_pd(a, b, c);
#elif defined(__AVX2__) && defined(__FMA__)
  return _mm256_fmadd_pd(a, b, c);
#else
  Vector<double> out;
  for (std::size_t l = 0; l < lanes<double>; ++l) out[l] = std::fma(a[l], b[l], c[l]);
  return out;
#endif
}

/// NaNs with one set of bits, since which operand's NaN an operation passes on is not defined.
template <class Real>
inline Vector<Real> canonical(const Vector<Real>& v) {
  return v == v ? v : broadcast(std::numeric_limits<Real>::quiet_NaN());
}

}  // namespace ballast::arithmetic
