#include "sim/sweep/sweep_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "sim/input_error.h"
#include "sim/output/output_error.h"
#include "sim/read_file.h"
#include "sim/scenario/json_text.h"
#include "sim/usage_error.h"

namespace ballast::sim {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t most_bytes = std::size_t{4} << 30;

[[noreturn]] void refuse(const fs::path& path, const std::string& why, const std::string& right) {
  throw UsageError("--out " + path.string() + ": " + why + "; " + right);
}

[[noreturn]] void cannot_write(const fs::path& path) {
  throw OutputError(path.string() + ": the results cannot be written: " + std::strerror(errno) +
                    "; the sweep can be started again and goes on from here");
}

fs::path partial(const fs::path& file) {
  return fs::path(file).replace_filename("." + file.filename().string() + ".partial");
}

/// All of the text, or OutputError.
void write_all(int file, std::string_view text, const fs::path& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) cannot_write(path);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void make_directory(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return;
  if (fs::exists(fs::symlink_status(path, error))) {
    refuse(path, "a file of this name exists", "name a directory");
  }
  if (!fs::create_directory(path, error)) {
    refuse(path, "it cannot be made: " + error.message(), "name another place");
  }
}

/// Nothing is in the directory but what a sweep leaves that was stopped at its very beginning.
bool is_free(const fs::path& path) {
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.path() != partial(path / sweep_file_name)) return false;
  }
  return true;
}

std::string text_of(const Json& value) {
  return value.is_structured() ? "another" : value.dump();
}

/// The first difference between what the directory holds and what is to be run.
std::string difference(const Json& there, const Json& here) {
  const Json patch = Json::diff(there, here);
  if (patch.empty()) return "it is written otherwise";
  const std::string at = patch[0]["path"].get<std::string>();
  const Json::json_pointer pointer(at);
  const auto value = [&](const Json& document) {
    return document.contains(pointer) ? text_of(document[pointer]) : "nothing";
  };
  return at + " is " + value(there) + " there and " + value(here) + " here";
}

}  // namespace

SweepDirectory::SweepDirectory(const std::string& name, const Sweep& sweep)
    : sweep_(sweep), path_(fs::path(name).lexically_normal()) {
  if (!path_.has_filename()) path_ = path_.parent_path();
  if (path_.empty()) refuse(name, "this is no name", "name a directory");
  make_directory(path_);
  lock();
  check_identity();
  open_journal();
}

void SweepDirectory::lock() {
  lock_ = FileDescriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock_) refuse(path_, std::strerror(errno), "name another place");
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return;
  refuse(path_, "another process is running a sweep in it", "wait for it, or name another place");
}

void SweepDirectory::check_identity() {
  const fs::path file = path_ / sweep_file_name;
  const std::string here = identity_of(sweep_).dump(2) + "\n";
  if (!fs::exists(file)) {
    if (!is_free(path_)) {
      refuse(path_, "the directory is not empty, and holds no sweep",
             "name a new one, or that of a sweep to go on with");
    }
    replace(sweep_file_name, here);
    return;
  }
  const std::string there =
      read_file(file.string(), "cannot read whose results these are", most_bytes);
  if (there == here) return;
  refuse(path_,
         "it holds the results of another sweep (" +
             difference(parse_json(there, file.string()), Json::parse(here)) + ")",
         "name a new directory");
}

void SweepDirectory::open_journal() {
  const fs::path file = path_ / results_file_name;
  journal_ = FileDescriptor(::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!journal_) cannot_write(file);
  const std::string text = read_file(file.string(), "cannot read the results", most_bytes);
  std::size_t good = 0;
  for (std::size_t end = 0; (end = text.find('\n', good)) != std::string::npos; good = end + 1) {
    const Json line = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(good),
                                  text.begin() + static_cast<std::ptrdiff_t>(end), nullptr,
                                  /*allow_exceptions=*/false);
    auto result = read_result(line, sweep_);
    if (!result) break;
    results_.insert_or_assign(result->run, std::move(*result));
  }
  if (good < text.size() && ::ftruncate(journal_.get(), static_cast<off_t>(good)) != 0)
    cannot_write(file);
  std::erase_if(results_, [](const auto& entry) { return entry.second.error.has_value(); });
}

void SweepDirectory::append(const RunResult& result) {
  write_all(journal_.get(), to_json(result, sweep_).dump() + "\n", path_ / results_file_name);
}

void SweepDirectory::replace(const std::string& file, std::string_view text) const {
  const fs::path path = path_ / file;
  const fs::path hidden = partial(path);
  const FileDescriptor out(::open(hidden.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!out) cannot_write(path);
  try {
    write_all(out.get(), text, path);
  } catch (...) {
    ::unlink(hidden.c_str());
    throw;
  }
  ::fsync(out.get());
  if (::rename(hidden.c_str(), path.c_str()) != 0) cannot_write(path);
}

}  // namespace ballast::sim
