#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ballast::sim {

/// What the header of a NumPy array file (.npy, format versions 1 to 3) says.
struct NpyHeader {
  std::string dtype;                    ///< NumPy's type string: "<f4", "<i8", "|b1"
  bool fortran_order = false;           ///< columns before rows
  std::vector<std::size_t> shape = {};  ///< empty for a single value
  std::size_t data_begin = 0;           ///< where the values begin in the file

  friend bool operator==(const NpyHeader&, const NpyHeader&) = default;
};

/// "(3, 4)", as NumPy writes a shape.
std::string shape_text(const std::vector<std::size_t>& shape);

/// Reads the header from the first bytes of a file. Throws std::invalid_argument with one line that
/// says why these are not the first bytes of such a file.
NpyHeader parse_npy_header(std::string_view bytes);

/// A header of version 1 for values in C order; its length is a multiple of 64, as NumPy's are.
std::string npy_header(const std::string& dtype, const std::vector<std::size_t>& shape);

}  // namespace ballast::sim
