#include "sim/output/new_file.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "sim/output/deferred_signals.h"
#include "sim/output/output_error.h"
#include "sim/usage_error.h"

namespace ballast::sim {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void cannot_write(const fs::path& path, const std::string& why) {
  throw OutputError(path.string() + ": the file cannot be written: " + why +
                    "; nothing was left behind");
}

void write_all(int file, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) cannot_write(path, std::strerror(errno));
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// The name of a hidden file in the same directory, ending in XXXXXX for mkostemp.
std::string hidden_name(const fs::path& path) {
  const std::string last = path.filename().string().substr(0, 200);
  return fs::path(path).replace_filename("." + last + ".partial-XXXXXX").string();
}

}  // namespace

NewFile::NewFile(const std::string& option, const std::string& name) : path_(name) {
  const auto refuse = [&](const std::string& why, const std::string& right) {
    throw UsageError(option + " " + name + ": " + why + "; " + right);
  };
  if (!path_.has_filename()) refuse("this is no name of a file", "name a new file");
  if (fs::exists(fs::symlink_status(path_))) {
    refuse("a file of this name exists", "name a new one, or remove this one");
  }
  std::string hidden = hidden_name(path_);
  file_ = FileDescriptor(::mkostemp(hidden.data(), O_CLOEXEC));
  if (!file_)
    refuse(std::string("it cannot be made: ") + std::strerror(errno), "name another place");
  ::unlink(hidden.c_str());
}

void NewFile::write(std::string_view bytes) {
  write_all(file_.get(), bytes, path_);
}

void NewFile::copy_to(const fs::path& hidden) const {
  const FileDescriptor out(::open(hidden.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!out) cannot_write(path_, std::strerror(errno));
  std::vector<char> block(std::size_t{1} << 20);
  ::lseek(file_.get(), 0, SEEK_SET);
  while (true) {
    const ssize_t count = ::read(file_.get(), block.data(), block.size());
    if (count < 0) cannot_write(path_, std::strerror(errno));
    if (count == 0) return;
    write_all(out.get(), {block.data(), static_cast<std::size_t>(count)}, path_);
  }
}

void NewFile::commit() {
  const DeferredSignals signals;
  std::string hidden = hidden_name(path_);
  hidden.replace(hidden.size() - 6, 6, std::to_string(::getpid()));
  try {
    copy_to(hidden);
    // A link, unlike a rename, replaces nothing.
    if (::link(hidden.c_str(), path_.c_str()) != 0) cannot_write(path_, std::strerror(errno));
  } catch (...) {
    ::unlink(hidden.c_str());
    throw;
  }
  ::unlink(hidden.c_str());
}

}  // namespace ballast::sim
