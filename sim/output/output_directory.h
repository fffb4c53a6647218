#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace ballast::sim {

/// A directory of results that appears whole or not at all: files are written into a hidden directory beside it,
/// which takes its name at the end. What was there before is never touched.
///
/// Errors: UsageError when the name is taken (an empty directory is free) or its parent is missing; OutputError
/// when a file cannot be written, for example on a full disk. In every case, and when `commit` is not reached,
/// nothing stays behind.
class OutputDirectory {
 public:
  /// Checks that the name is free and makes the hidden directory.
  explicit OutputDirectory(const std::string& name);
  ~OutputDirectory();
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;

  /// Writes a file; `path` is relative and may name folders, which are made.
  void write(const std::filesystem::path& path, std::string_view text);
  /// Gives the directory its name.
  void commit();

 private:
  std::filesystem::path name_;
  std::filesystem::path hidden_;
};

}  // namespace ballast::sim
