#pragma once

#include <cstddef>
#include <span>

/// Sums in one order that is part of their definition.
namespace ballast::arithmetic {

/// Long sums are taken in blocks of this many terms, and the sums of the blocks are then added in
/// order. That is more exact than one long chain. The sum of no terms is +0.
///
/// NaN or opposite infinities give the one quiet NaN of std::numeric_limits. All functions here
/// take time linear in the number of terms, allocate nothing and throw nothing.
inline constexpr std::size_t block_size = 256;

/// Inside a block, a sum runs in this many lanes: lane l starts at +0 and adds the terms l, l + 16,
/// l + 32, ... of the block in order; then lane l takes in lane l + 8 for l < 8, l + 4 for l < 4, l
/// + 2 and l + 1.
inline constexpr std::size_t sum_lanes = 16;

/// In n terms the error is at most about (20 + n / 256) * 2^-24 * sum_i |x_i| (2^-53 in double).
float sum(std::span<const float> values);
double sum(std::span<const double> values);
/// The same over fp32 values that are widened first.
double sum_in_double(std::span<const float> values);

/// sum_i a_i * b_i, for `a` and `b` of equal size: inside a block one chain of fused multiply-adds
/// in order, from +0. Error at most about (256 + n / 256) * 2^-24 * sum_i |a_i b_i| (2^-53 in
/// double).
float dot(std::span<const float> a, std::span<const float> b);
double dot(std::span<const double> a, std::span<const double> b);

/// out_r = dot(a_r, b_r) for vectors of `length` values from a_r and b_r on. Faster than one after the other, since in
/// a chain each term waits for the last.
void dots(std::span<const float* const> a, std::span<const float* const> b, std::size_t length,
          std::span<float> out);
void dots(std::span<const double* const> a, std::span<const double* const> b, std::size_t length,
          std::span<double> out);

/// out_r = the sum of the squares of `length` values from rows_r on, in double: one chain in order, from +0.
void sums_of_squares(std::span<const float* const> rows, std::size_t length, std::span<double> out);

/// log(sum_i e^(x_i)) as m + log(sum_i e^(x_i - m)) with m = max x, so that it does not overflow;
/// the sum is `sum`. -inf for no entries and when all are -inf; NaN with a NaN entry; else +inf
/// with a +inf entry.
float log_sum_exp(std::span<const float> x);
double log_sum_exp(std::span<const double> x);

/// out_i = e^(x_i - max x) / sum_j e^(x_j - max x); `out` has the size of `x` and may be `x`. The
/// sum is `sum`. Entries of -inf give 0. With a NaN or +inf entry, or when all are -inf, every
/// output is NaN.
void softmax(std::span<const float> x, std::span<float> out);
void softmax(std::span<const double> x, std::span<double> out);

}  // namespace ballast::arithmetic
