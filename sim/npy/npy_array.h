#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ballast::sim {

/// A .npy file in C order, mapped into memory and read only: pages come in when they are looked at,
/// and the system may drop them at any time, so the file may be larger than memory.
class NpyArray {
 public:
  /// Throws InputError, which says `what` the file was wanted for ("cannot read the logits"), when
  /// the file cannot be read, is no array file, is in Fortran order, or has another size than its
  /// header says.
  NpyArray(const std::string& path, const std::string& what);
  ~NpyArray();
  NpyArray(const NpyArray&) = delete;
  NpyArray& operator=(const NpyArray&) = delete;

  const std::string& path() const { return path_; }
  const std::string& dtype() const { return dtype_; }
  const std::vector<std::size_t>& shape() const { return shape_; }

  /// The value at an index into all of them, in C order.
  template <class T>
  const T* at(std::size_t index) const {
    return reinterpret_cast<const T*>(values_ + index * sizeof(T));
  }
  /// Whether `at<T>` may be dereferenced: the values begin at a multiple of their size.
  template <class T>
  bool aligned() const {
    return reinterpret_cast<std::size_t>(values_) % alignof(T) == 0;
  }

  /// Brings the pages of these bytes of the values in at once, which is faster than page by page.
  void fetch(std::size_t first, std::size_t bytes) const;
  /// Takes the pages that lie wholly within these bytes out of this process's memory.
  void release(std::size_t first, std::size_t bytes) const;

  /// Throws InputError with this file as the place.
  [[noreturn]] void refuse(const std::string& why, const std::string& right) const;

 private:
  void map(int file);
  void read_header();

  std::string path_, what_, dtype_;
  std::vector<std::size_t> shape_;
  std::size_t bytes_ = 0;
  const char* file_ = nullptr;
  const char* values_ = nullptr;
};

}  // namespace ballast::sim
