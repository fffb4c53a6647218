#include "tests/bench/batch.h"

#include "core/random/distributions.h"
#include "core/random/stream.h"

namespace ballast::bench {

Batch::Batch(const Shape& shape) : logits(normal_matrix(shape.tokens, shape.experts, 1)) {
  for (std::size_t j = 0; j < shape.experts; ++j) {
    biases.push_back(-0.2f + 0.4f * static_cast<float>(j) / static_cast<float>(shape.experts));
  }
}

Matrix<float> normal_matrix(std::size_t rows, std::size_t cols, std::uint64_t seed) {
  Matrix<float> values(rows, cols);
  Stream stream(seed);
  for (float& value : values.values()) value = static_cast<float>(normal(stream));
  return values;
}

}  // namespace ballast::bench
