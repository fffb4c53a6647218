#pragma once

#include <array>
#include <cstdint>

namespace ballast::arithmetic {

/// The numbers of the functions that differ between the formats, for all code that computes them.
/// The polynomials interpolate at Chebyshev nodes: `expm1` is (e^r - 1 - r) / r^2 on |r| <= log(2)
/// / 2, `log1p` is (2 atanh(s) - 2 s) / s^3 as a polynomial in s^2 on |s| <= (sqrt(2) - 1) /
/// (sqrt(2) + 1); both in rising powers.
template <class Real>
struct Format;

template <>
struct Format<float> {
  using Bits = std::uint32_t;
  static constexpr int mantissa_bits = 23;
  static constexpr Bits exponent_bias = 127;
  static constexpr float log2_e = 0x1.715476p+0f;
  static constexpr float log_2_high = 0x1.62e43p-1f;
  static constexpr float log_2_low = -0x1.05c61p-29f;
  static constexpr float log_2_short =
      0x1.62e4p-1f;  ///< few enough bits that k * log_2_short is exact
  static constexpr float log_2_rest = 0x1.7f7d1cp-20f;
  static constexpr float exp_overflow = 89.0f;     ///< e^x is infinite from here on
  static constexpr float exp_underflow = -104.0f;  ///< e^x rounds to 0 from here on
  static constexpr float tanh_saturation = 10.0f;
  static constexpr std::array<float, 6> expm1 = {0x1p-1f,       0x1.555556p-3f,  0x1.5554eap-5f,
                                                 0x1.1110ep-7f, 0x1.6d4324p-10f, 0x1.a124f2p-13f};
  static constexpr std::array<float, 4> log1p = {0x1.555556p-1f, 0x1.9999ecp-2f, 0x1.245c28p-2f,
                                                 0x1.ddd4dap-3f};
};

template <>
struct Format<double> {
  using Bits = std::uint64_t;
  static constexpr int mantissa_bits = 52;
  static constexpr Bits exponent_bias = 1023;
  static constexpr double log2_e = 0x1.71547652b82fep+0;
  static constexpr double log_2_high = 0x1.62e42fefa39efp-1;
  static constexpr double log_2_low = 0x1.abc9e3b39803fp-56;
  static constexpr double log_2_short = 0x1.62e42fefa38p-1;
  static constexpr double log_2_rest = 0x1.ef35793c7673p-45;
  static constexpr double exp_overflow = 710.0;
  static constexpr double exp_underflow = -746.0;
  static constexpr double tanh_saturation = 20.0;
  static constexpr std::array<double, 11> expm1 = {0x1p-1,
                                                   0x1.5555555555557p-3,
                                                   0x1.5555555555556p-5,
                                                   0x1.11111111100dcp-7,
                                                   0x1.6c16c16c162d4p-10,
                                                   0x1.a01a01abe7fe1p-13,
                                                   0x1.a01a01a6d889cp-16,
                                                   0x1.71de0231960ebp-19,
                                                   0x1.27e4db646b17ep-22,
                                                   0x1.af4de97ca4194p-26,
                                                   0x1.1f730349868cep-29};
  static constexpr std::array<double, 7> log1p = {
      0x1.5555555555558p-1, 0x1.9999999995273p-2, 0x1.2492492dfd86cp-2, 0x1.c71c62d5e53ep-3,
      0x1.7462b91b8df65p-3, 0x1.39fdcceb4bb45p-3, 0x1.2b5f68a50d903p-3};
};

}  // namespace ballast::arithmetic
