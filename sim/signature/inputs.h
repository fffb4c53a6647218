#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "core/matrix.h"
#include "core/random/distributions.h"
#include "core/random/stream.h"

/// The fixed inputs of stages: each stage has a stream of its own name.
namespace ballast::sim {

inline Stream stage_stream(std::string_view stage) {
  return Stream(1).child("signature").child(stage);
}

template <class Real>
std::vector<Real> normal_values(Stream stream, std::size_t count) {
  std::vector<Real> values(count);
  for (Real& value : values) value = static_cast<Real>(normal(stream));
  return values;
}

template <class Real>
Matrix<Real> normal_matrix(const Stream& stream, std::size_t rows, std::size_t cols) {
  Matrix<Real> matrix(rows, cols);
  const auto values = normal_values<Real>(stream, rows * cols);
  std::copy(values.begin(), values.end(), matrix.data());
  return matrix;
}

/// Biases about as large as those of a router that is being balanced.
inline std::vector<float> small_biases(const Stream& stream, std::size_t experts) {
  auto biases = normal_values<float>(stream, experts);
  for (float& bias : biases) bias *= 0.125f;
  return biases;
}

}  // namespace ballast::sim
