#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/output/output_file.h"

namespace ballast::sim {

/// NumPy's type string of a number.
template <class T>
inline constexpr const char* npy_dtype = nullptr;
template <>
inline constexpr const char* npy_dtype<float> = "<f4";
template <>
inline constexpr const char* npy_dtype<std::int32_t> = "<i4";
template <>
inline constexpr const char* npy_dtype<std::int64_t> = "<i8";

/// Writes a .npy file in C order, piece by piece. Errors: as OutputFile.
class NpyWriter {
 public:
  /// The shape is that of all the values that will come.
  NpyWriter(OutputDirectory& directory, const std::string& name, const std::string& dtype,
            const std::vector<std::size_t>& shape);

  template <class T>
  void append(std::span<const T> values) {
    file_.append({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  }
  void close() { file_.close(); }

 private:
  OutputFile file_;
};

/// A whole file of one dimension.
template <class T>
void write_npy(OutputDirectory& directory, const std::string& name, std::span<const T> values) {
  NpyWriter writer(directory, name, npy_dtype<T>, {values.size()});
  writer.append(values);
  writer.close();
}

}  // namespace ballast::sim
