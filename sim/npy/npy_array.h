#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ballast::sim {

/// A .npy file in C order, of which parts are read as they are wanted, so it may be larger than
/// memory.
///
/// It is read and not mapped: where the machine is a virtual one, the first look at each mapped
/// page was measured to cost several times what copying the page does.
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

  /// Reads `bytes` bytes of the values, from byte `first` of them on. Safe on several threads at
  /// once. Throws InputError when the file cannot be read, or has become shorter.
  void read(std::size_t first, std::size_t bytes, void* to) const;

  /// Throws InputError with this file as the place.
  [[noreturn]] void refuse(const std::string& why, const std::string& right) const;

 private:
  void read_header();
  std::size_t file_bytes() const;
  void read_at(std::size_t offset, std::size_t bytes, void* to) const;

  std::string path_, what_, dtype_;
  std::vector<std::size_t> shape_;
  std::size_t data_begin_ = 0;
  int file_;
};

}  // namespace ballast::sim
