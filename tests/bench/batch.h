#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/matrix.h"

namespace ballast::bench {

/// What performance figures are taken at: tokens, experts E, experts chosen per token k.
struct Shape {
  std::size_t tokens, experts, top_k;
  friend bool operator==(const Shape&, const Shape&) = default;
};
inline constexpr Shape shapes[] = {
    {65536, 896, 16}, {65536, 256, 8}, {65536, 64, 6}, {262144, 8, 2}};

/// Standard normal logits `[tokens, experts]`, and biases linear within +-0.2.
struct Batch {
  explicit Batch(const Shape& shape);

  Matrix<float> logits;
  std::vector<float> biases;
};

/// Standard normal values.
Matrix<float> normal_matrix(std::size_t rows, std::size_t cols, std::uint64_t seed);

}  // namespace ballast::bench
