#include "sim/output/output_directory.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "sim/output/output_error.h"
#include "sim/usage_error.h"

namespace ballast::sim {

namespace fs = std::filesystem;

namespace {

/// File systems end at 255 bytes, and the hidden directory's name is longer.
constexpr std::size_t longest_name = 200;

[[noreturn]] void refuse(const fs::path& path, const std::string& why, const std::string& right) {
  throw UsageError("--out " + path.string() + ": " + why + "; " + right);
}

[[noreturn]] void cannot_write(const fs::path& path, const std::string& why) {
  throw OutputError(path.string() + ": the results cannot be written: " + why +
                    "; nothing was left behind");
}

void check_is_free(const fs::path& path) {
  std::error_code error;
  const auto status = fs::symlink_status(path, error);
  if (fs::exists(status)) {
    if (!fs::is_directory(status))
      refuse(path, "a file of this name exists", "name a new directory");
    if (!fs::is_empty(path, error) || error) {
      refuse(path, "the directory exists and is not empty",
             "name a new directory, or remove this one");
    }
  }
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!fs::is_directory(parent, error)) {
    refuse(path, "there is no directory " + parent.string(),
           "make it first, or name another place");
  }
  if (access(parent.c_str(), W_OK | X_OK) != 0) {
    refuse(path, "in " + parent.string() + " nothing can be made: " + std::strerror(errno),
           "name another place");
  }
}

}  // namespace

OutputDirectory::OutputDirectory(const std::string& name) {
  name_ = fs::path(name).lexically_normal();
  if (!name_.has_filename()) name_ = name_.parent_path();  // "results/" is "results"
  const std::string last = name_.filename().string();
  if (name_.empty() || last == "." || last == "..")
    refuse(name, "this is no name", "name a new directory");
  if (last.size() > longest_name) {
    refuse(name, "the name has more than " + std::to_string(longest_name) + " bytes",
           "choose a shorter one");
  }
  check_is_free(name_);
}

OutputDirectory::~OutputDirectory() {
  std::error_code ignored;
  if (!hidden_.empty()) fs::remove_all(hidden_, ignored);
}

void OutputDirectory::make_hidden() {
  signals_.emplace();
  const std::string stem = "." + name_.filename().string() + ".partial-" + std::to_string(getpid());
  // Another process can have the same id when the disk is shared by containers or machines.
  for (int attempt = 0; attempt < 100; ++attempt) {
    const fs::path path = fs::path(name_).replace_filename(stem + "-" + std::to_string(attempt));
    std::error_code error;
    if (fs::create_directory(path, error)) {
      hidden_ = path;
      return;
    }
    if (error) cannot_write(name_, error.message());
  }
  cannot_write(name_, "there are too many directories " + stem + "-* beside it");
}

std::ofstream OutputDirectory::open(const fs::path& path) {
  if (hidden_.empty()) make_hidden();
  std::error_code error;
  fs::create_directories((hidden_ / path).parent_path(), error);
  if (error) cannot_write(name_ / path, error.message());
  errno = 0;
  return std::ofstream(hidden_ / path, std::ios::binary);
}

void OutputDirectory::fail(const fs::path& path) const {
  cannot_write(name_ / path, errno != 0 ? std::strerror(errno) : "unknown reason");
}

void OutputDirectory::write(const fs::path& path, std::string_view text) {
  std::ofstream file = open(path);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) fail(path);
}

void OutputDirectory::commit() {
  if (hidden_.empty()) make_hidden();
  std::error_code error;
  fs::rename(hidden_, name_, error);  // replaces an empty directory, nothing else
  if (error) cannot_write(name_, error.message());
  hidden_.clear();
  signals_.reset();
}

}  // namespace ballast::sim
