#include "sim/read_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "sim/input_error.h"

namespace ballast::sim {
namespace {

InputError failed(const std::string& path, const std::string& what, const std::string& why) {
  return InputError({.what = what, .where = path, .why = why, .right = ""});
}

struct Closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

std::string read_file(const std::string& path, const std::string& what, std::size_t max_bytes) {
  const std::unique_ptr<std::FILE, Closer> file(std::fopen(path.c_str(), "rb"));
  if (!file) throw failed(path, what, std::strerror(errno));
  std::string bytes;
  char block[1 << 16];
  // A directory opens like a file and fails at the first read.
  while (const std::size_t read = std::fread(block, 1, sizeof block, file.get())) {
    if (read > max_bytes - bytes.size()) {
      throw failed(path, what, "the file is larger than " + std::to_string(max_bytes) + " bytes");
    }
    bytes.append(block, read);
  }
  if (std::ferror(file.get())) throw failed(path, what, std::strerror(errno));
  return bytes;
}

}  // namespace ballast::sim
