#pragma once

#include <cstddef>

namespace ballast::kernels {

/// Sums over many rows, each in its own order; side by side, since each addition waits for the last.
struct Reductions {
  /// out[r] = arithmetic::dot of the `length` values from a[r] on and those from b[r] on.
  void (*dots)(const float* const* a, const float* const* b, std::size_t count, std::size_t length,
               float* out);
  /// arithmetic::sums_of_squares of the `length` values from rows[r] on.
  void (*squares)(const float* const* rows, std::size_t count, std::size_t length, double* out);
};

}  // namespace ballast::kernels
