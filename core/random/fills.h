#pragma once

#include <span>

#include "core/random/stream.h"

/// Arrays of random values at the speed of the router, by vectors where the processor has some,
/// with the same bits everywhere: they are made of IEEE 754 operations in fp32, fused multiply-adds
/// and the functions of core/arithmetic alone.
///
/// Entry i is made of one 32-bit word w of the stream: half i mod 2 (the low one first) of draw
/// position + i / 2. So it depends on the key of the stream and its place alone: any part of a fill
/// is reached by a seek, in any order, on any thread. A fill of n values leaves the stream behind
/// ceil(n / 2) draws.
///
/// The double values of core/random/distributions.h take 64 bits and go further into the tails.
namespace ballast {

/// Uniform in [0, 1): floor(w / 2^8) / 2^24, exact.
void fill_uniform(Stream& stream, std::span<float> out);

/// Standard normal, by inversion: the quantile of p = (h + 1/2) / 2^32 with h the low 31 bits of w,
/// with its sign turned when the highest bit is set. The quantile is that of a polynomial of degree
/// 6 for each octave of p (kernels::NormalTable), within 1e-6 of the true one. None is beyond 6.34,
/// outside of which there is a share of 2.3e-10 of the distribution; moments and tails are the
/// distribution's up to that.
void fill_normal(Stream& stream, std::span<float> out);

/// arithmetic::exp(sigma * z) for the values z of fill_normal, both rounded: median 1. `sigma` is
/// finite and >= 0.
void fill_log_normal(Stream& stream, float sigma, std::span<float> out);

/// Standard Gumbel values -ln(-ln u), u = (h + 1/2) / 2^23 with h the high 23 bits of w, by
/// arithmetic::log. None lies outside [-2.77, 16.64].
///
/// Logits ln w_j + Gumbel_j select by Plackett and Luce: j comes first with probability w_j / sum
/// w, and top-k draws k without replacement (Yellott 1977; Kool, van Hoof, Welling,
/// arXiv:1903.06059).
void fill_gumbel(Stream& stream, std::span<float> out);

}  // namespace ballast
