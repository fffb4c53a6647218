#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "sim/output/file_descriptor.h"

namespace ballast::sim {

/// A file of results that appears whole or not at all: what is written goes to a file without a
/// name in the same directory, and is given its name by `commit`. What was there before is never
/// touched, and nothing stays behind when the process ends in between, whatever ends it (but for a
/// hidden file where the file system knows no files without a name and kill -9 meets the commit).
///
/// Errors: UsageError, which names the option, when the name is taken or its directory cannot be
/// written to; OutputError when there is no room.
class NewFile {
 public:
  /// `option` is what gave the name: "--record".
  NewFile(const std::string& option, const std::string& name);

  void write(std::string_view bytes);
  void commit();

 private:
  void copy_to(const std::filesystem::path& hidden) const;

  std::filesystem::path path_;
  FileDescriptor file_;
};

}  // namespace ballast::sim
