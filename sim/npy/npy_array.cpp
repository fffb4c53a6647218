#include "sim/npy/npy_array.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "sim/input_error.h"
#include "sim/npy/npy_header.h"

namespace ballast::sim {
namespace {

/// Much longer than the header of any array of numbers.
constexpr std::size_t header_bytes_max = 1 << 16;

/// Of one value, from NumPy's type string; 0 for types of no fixed size.
std::size_t item_bytes(std::string_view dtype) {
  std::size_t bytes = 0;
  if (dtype.size() > 2) std::from_chars(dtype.data() + 2, dtype.data() + dtype.size(), bytes);
  return bytes;
}

std::string bytes_text(std::size_t bytes) {
  return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

}  // namespace

NpyArray::NpyArray(const std::string& path, const std::string& what)
    : path_(path), what_(what), file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (file_ < 0) refuse(std::strerror(errno), "");
  try {
    read_header();
  } catch (...) {
    close(file_);
    throw;
  }
}

NpyArray::~NpyArray() {
  close(file_);
}

std::size_t NpyArray::file_bytes() const {
  struct stat status = {};
  if (fstat(file_, &status) != 0) refuse(std::strerror(errno), "");
  if (!S_ISREG(status.st_mode)) refuse("this is no regular file", "give an array file (.npy)");
  if (status.st_size == 0) refuse("the file is empty", "give an array file (.npy)");
  return static_cast<std::size_t>(status.st_size);
}

void NpyArray::read_at(std::size_t offset, std::size_t bytes, void* to) const {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t count = pread(file_, static_cast<char*>(to) + done, bytes - done,
                                static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse(std::strerror(errno), "");
    if (count == 0) refuse("the file has become shorter", "leave it as it is meanwhile");
    done += static_cast<std::size_t>(count);
  }
}

void NpyArray::read(std::size_t first, std::size_t bytes, void* to) const {
  read_at(data_begin_ + first, bytes, to);
}

void NpyArray::read_header() {
  const std::size_t size = file_bytes();
  std::string begin(std::min(size, header_bytes_max), '\0');
  read_at(0, begin.size(), begin.data());
  NpyHeader header;
  try {
    header = parse_npy_header(begin);
  } catch (const std::invalid_argument& error) {
    refuse(error.what(), "give an array file (.npy) as numpy.save writes it");
  }
  if (header.fortran_order) {
    refuse("the array is in Fortran order", "save numpy.ascontiguousarray(array)");
  }
  std::size_t expected = item_bytes(header.dtype);
  if (expected == 0) refuse("its values have the type '" + header.dtype + "'", "save numbers");
  bool fits = true;
  for (const std::size_t length : header.shape) {
    fits = fits && !__builtin_mul_overflow(expected, length, &expected);
  }
  const std::size_t held = size - header.data_begin;
  if (!fits || held != expected) {
    refuse("it holds " + bytes_text(held) + " of values, but its shape " +
               shape_text(header.shape) + " of type '" + header.dtype + "' needs " +
               (fits ? bytes_text(expected) : std::string("more than there can be")),
           held < expected || !fits ? "the file seems to be cut off; save it again"
                                    : "save one array a file");
  }
  dtype_ = header.dtype;
  shape_ = header.shape;
  data_begin_ = header.data_begin;
}

void NpyArray::refuse(const std::string& why, const std::string& right) const {
  throw InputError({.what = what_, .where = path_, .why = why, .right = right});
}

}  // namespace ballast::sim
