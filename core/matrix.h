#pragma once

#include <boost/align/aligned_allocator.hpp>
#include <cstddef>
#include <span>
#include <vector>

namespace ballast {

/// A row-major view of `rows` x `cols` values that someone else owns; cheap to copy.
template <class T>
class MatrixView {
 public:
  MatrixView() = default;
  MatrixView(T* data, std::size_t rows, std::size_t cols) : data_(data), rows_(rows), cols_(cols) {}

  /// A mutable view converts to a view of constants.
  operator MatrixView<const T>() const { return {data_, rows_, cols_}; }

  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  T* data() const { return data_; }
  std::span<T> row(std::size_t i) const { return {data_ + i * cols_, cols_}; }
  std::span<T> values() const { return {data_, rows_ * cols_}; }
  T& operator()(std::size_t i, std::size_t j) const { return data_[i * cols_ + j]; }
  /// Rows [first, first + count).
  MatrixView block(std::size_t first, std::size_t count) const {
    return {data_ + first * cols_, count, cols_};
  }

 private:
  T* data_ = nullptr;
  std::size_t rows_ = 0;
  std::size_t cols_ = 0;
};

/// Owned row-major storage of `rows` x `cols` values. Shapes in this project are written
/// `[rows, cols]`, for example `[tokens, experts]`. It begins with a cache line, so that vectors of
/// the processor do not lie across two of them where rows are whole lines.
template <class T>
class Matrix {
 public:
  Matrix() = default;
  Matrix(std::size_t rows, std::size_t cols, T value = T{})
      : rows_(rows), cols_(cols), values_(rows * cols, value) {}

  /// Takes another shape, in the same memory if it is enough. What the values are then is left open.
  void reshape(std::size_t rows, std::size_t cols) {
    rows_ = rows;
    cols_ = cols;
    values_.resize(rows * cols);
  }

  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  T* data() { return values_.data(); }
  const T* data() const { return values_.data(); }
  std::span<T> row(std::size_t i) { return {data() + i * cols_, cols_}; }
  std::span<const T> row(std::size_t i) const { return {data() + i * cols_, cols_}; }
  std::span<T> values() { return values_; }
  std::span<const T> values() const { return values_; }
  T& operator()(std::size_t i, std::size_t j) { return values_[i * cols_ + j]; }
  const T& operator()(std::size_t i, std::size_t j) const { return values_[i * cols_ + j]; }
  MatrixView<T> view() { return {data(), rows_, cols_}; }
  MatrixView<const T> view() const { return {data(), rows_, cols_}; }
  operator MatrixView<T>() { return view(); }
  operator MatrixView<const T>() const { return view(); }

  friend bool operator==(const Matrix&, const Matrix&) = default;

 private:
  std::size_t rows_ = 0;
  std::size_t cols_ = 0;
  static constexpr std::size_t cache_line = 64;  ///< bytes
  std::vector<T, boost::alignment::aligned_allocator<T, cache_line>> values_;
};

}  // namespace ballast
