#include "sim/output/output_file.h"

#include <cerrno>

namespace ballast::sim {

OutputFile::OutputFile(OutputDirectory& directory, const std::filesystem::path& path)
    : directory_(directory), path_(path), file_(directory.open(path)) {
  check();
}

void OutputFile::append(std::string_view bytes) {
  errno = 0;
  file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  check();
}

void OutputFile::close() {
  errno = 0;
  file_.close();
  check();
}

void OutputFile::check() const {
  if (!file_) directory_.fail(path_);
}

}  // namespace ballast::sim
