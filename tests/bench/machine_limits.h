#pragma once

#include <cstddef>
#include <span>

/// What the processor can do at most, for figures to be held against.
namespace ballast::bench {

/// Many independent fused multiply-adds in registers, as wide as the processor has them; returns
/// their number of floating-point operations.
double fused_multiply_adds(std::size_t rounds);

/// The sum of the values, by reading each cache line once.
float read_all(std::span<const float> values);

/// Adds 1 to 16-bit counters of 16 KiB, one after the other at places read from an array; about as
/// often as it says.
void increment_counters(std::size_t increments);

}  // namespace ballast::bench
