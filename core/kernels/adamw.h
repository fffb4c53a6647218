#pragma once

#include <cstddef>

namespace ballast::kernels {

/// What is the same for every value of a step of AdamW (Loshchilov and Hutter, arXiv:1711.05101,
/// Algorithm 2). With g = gradient / scale,
///     m <- beta1 m + keep1 g,   v <- beta2 v + keep2 g^2,
///     p <- p - rate (m correct1 / (sqrt(v correct2) + eps) + decay p),
/// each operation rounded to fp32.
struct AdamWFactors {
  float scale, beta1, beta2, keep1, keep2, correct1, correct2, rate, eps, decay;
  bool exact_inverse = false;  ///< to multiply by 1 / scale gives the bits of the division
};

/// The arrays of one parameter, `count` values each; p, m and v are changed. A NaN that is written
/// is the one quiet NaN.
struct AdamWValues {
  const float* gradient;
  float *p, *m, *v;
  std::size_t count;
};

using AdamW = void (*)(const AdamWFactors& factors, const AdamWValues& values);

}  // namespace ballast::kernels
