#pragma once

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "core/matrix.h"

namespace ballast::oracle {

/// A matrix written out row by row.
inline Matrix<float> matrix(std::initializer_list<std::vector<float>> rows) {
  Matrix<float> out(rows.size(), rows.begin()->size());
  std::size_t i = 0;
  for (const auto& row : rows) std::copy(row.begin(), row.end(), out.row(i++).begin());
  return out;
}

/// `count` rows that are all the same.
inline Matrix<float> repeated(std::size_t count, const std::vector<float>& row) {
  Matrix<float> out(count, row.size());
  for (std::size_t i = 0; i < count; ++i) std::copy(row.begin(), row.end(), out.row(i).begin());
  return out;
}

/// Rows of `a`, then rows of `b`.
inline Matrix<float> stacked(const Matrix<float>& a, const Matrix<float>& b) {
  Matrix<float> out(a.rows() + b.rows(), a.cols());
  std::copy(a.values().begin(), a.values().end(), out.values().begin());
  std::copy(b.values().begin(), b.values().end(), out.row(a.rows()).begin());
  return out;
}

}  // namespace ballast::oracle
