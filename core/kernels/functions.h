#pragma once

#include <cstddef>

namespace ballast::kernels {

/// Functions of core/arithmetic/functions.h over arrays, to the bit; `out` may be `in`.
struct Functions {
  void (*exp)(const float* in, float* out, std::size_t count);
  void (*tanh)(const float* in, float* out, std::size_t count);
};

}  // namespace ballast::kernels
