#pragma once

#include <cstddef>
#include <span>

/// Sums in one order that is part of their definition.
namespace ballast::arithmetic {

/// Long sums are taken in blocks of this many terms, each a chain of its own, and the blocks are then
/// added in order. That is more exact than one long chain.
inline constexpr std::size_t block_size = 256;

float sum(std::span<const float> values);
double sum(std::span<const double> values);
/// The sum of fp32 values in double.
double sum_in_double(std::span<const float> values);

/// sum_i a_i * b_i: inside a block one chain of fused multiply-adds in order, from +0.
float dot(std::span<const float> a, std::span<const float> b);
double dot(std::span<const double> a, std::span<const double> b);

/// log(sum_i e^(x_i)), taken from the largest entry so that it does not overflow.
float log_sum_exp(std::span<const float> x);
double log_sum_exp(std::span<const double> x);

/// out_i = e^(x_i - max x) / sum_j e^(x_j - max x); `out` may be `x`.
void softmax(std::span<const float> x, std::span<float> out);
void softmax(std::span<const double> x, std::span<double> out);

}  // namespace ballast::arithmetic
