#pragma once

#include <cstddef>
#include <cstdint>

#include "core/matrix.h"
#include "core/random/distributions.h"

namespace ballast::test {

/// Independent standard normal values times `deviation`.
template <class Real>
Matrix<Real> random_matrix(std::size_t rows, std::size_t cols, std::uint64_t seed, double deviation = 1.0) {
  Matrix<Real> matrix(rows, cols);
  Stream stream(seed);
  for (Real& value : matrix.values()) value = static_cast<Real>(deviation * normal(stream));
  return matrix;
}

}  // namespace ballast::test
