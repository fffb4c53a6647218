#pragma once

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "sim/output/deferred_signals.h"

namespace ballast::sim {

/// A directory of results that appears whole or not at all: files are written into a hidden
/// directory beside it, which takes its name at the end. What was there before is never touched.
/// The hidden directory comes with the first file, and from then on signals wait until it is whole
/// or gone: nothing stays behind when the user ends the process.
///
/// Errors: UsageError when the name is taken (an empty directory is free), or its parent is missing
/// or may not be written to; OutputError when a file cannot be written, for example on a full disk.
/// In every case, and when `commit` is not reached, nothing stays behind.
class OutputDirectory {
 public:
  /// Checks that the directory could be made; makes nothing.
  explicit OutputDirectory(const std::string& name);
  ~OutputDirectory();
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;

  /// Writes a file; `path` is relative and may name folders, which are made.
  void write(const std::filesystem::path& path, std::string_view text);
  /// The same piece by piece; OutputFile is what uses it.
  std::ofstream open(const std::filesystem::path& path);
  /// Throws OutputError for a file that could not be written, with the system's last reason.
  [[noreturn]] void fail(const std::filesystem::path& path) const;
  /// Gives the directory its name.
  void commit();

 private:
  void make_hidden();

  std::optional<DeferredSignals> signals_;  // outlives the removal of the hidden directory
  std::filesystem::path name_;
  std::filesystem::path hidden_;
};

}  // namespace ballast::sim
