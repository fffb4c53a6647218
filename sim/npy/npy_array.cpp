#include "sim/npy/npy_array.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "sim/input_error.h"
#include "sim/npy/npy_header.h"

#ifndef MADV_POPULATE_READ  // Linux 5.14; older systems refuse it, and then pages come in one by
                            // one
#define MADV_POPULATE_READ 22
#endif

namespace ballast::sim {
namespace {

/// Of one value, from NumPy's type string; 0 for types of no fixed size.
std::size_t item_bytes(std::string_view dtype) {
  std::size_t bytes = 0;
  if (dtype.size() > 2) std::from_chars(dtype.data() + 2, dtype.data() + dtype.size(), bytes);
  return bytes;
}

std::string bytes_text(std::size_t bytes) {
  return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : number(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Descriptor() {
    if (number >= 0) close(number);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  const int number;
};

}  // namespace

NpyArray::NpyArray(const std::string& path, const std::string& what) : path_(path), what_(what) {
  const Descriptor file(path);
  if (file.number < 0) refuse(std::strerror(errno), "");
  map(file.number);
  try {
    read_header();
  } catch (...) {
    munmap(const_cast<char*>(file_), bytes_);
    throw;
  }
}

NpyArray::~NpyArray() {
  munmap(const_cast<char*>(file_), bytes_);
}

void NpyArray::map(int file) {
  struct stat status = {};
  if (fstat(file, &status) != 0) refuse(std::strerror(errno), "");
  if (!S_ISREG(status.st_mode)) refuse("this is no regular file", "give an array file (.npy)");
  bytes_ = static_cast<std::size_t>(status.st_size);
  if (bytes_ == 0) refuse("the file is empty", "give an array file (.npy)");
  void* const mapped = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) refuse(std::strerror(errno), "");
  madvise(mapped, bytes_, MADV_SEQUENTIAL);
  file_ = static_cast<const char*>(mapped);
}

void NpyArray::read_header() {
  NpyHeader header;
  try {
    header = parse_npy_header({file_, bytes_});
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
  const std::size_t held = bytes_ - header.data_begin;
  if (!fits || held != expected) {
    refuse("it holds " + bytes_text(held) + " of values, but its shape " +
               shape_text(header.shape) + " of type '" + header.dtype + "' needs " +
               (fits ? bytes_text(expected) : std::string("more than there can be")),
           held < expected || !fits ? "the file seems to be cut off; save it again"
                                    : "save one array a file");
  }
  dtype_ = header.dtype;
  shape_ = header.shape;
  values_ = file_ + header.data_begin;
}

void NpyArray::fetch(std::size_t first, std::size_t bytes) const {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t begin = static_cast<std::size_t>(values_ - file_) + first;
  const std::size_t page_begin = begin / page * page;
  madvise(const_cast<char*>(file_) + page_begin, begin + bytes - page_begin, MADV_POPULATE_READ);
}

void NpyArray::release(std::size_t first, std::size_t bytes) const {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t begin = static_cast<std::size_t>(values_ - file_) + first;
  const std::size_t page_begin = (begin + page - 1) / page * page;
  const std::size_t page_end = (begin + bytes) / page * page;
  if (page_begin >= page_end) return;
  madvise(const_cast<char*>(file_) + page_begin, page_end - page_begin, MADV_DONTNEED);
}

void NpyArray::refuse(const std::string& why, const std::string& right) const {
  throw InputError({.what = what_, .where = path_, .why = why, .right = right});
}

}  // namespace ballast::sim
