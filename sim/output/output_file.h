#pragma once

#include <filesystem>
#include <fstream>
#include <string_view>

#include "sim/output/output_directory.h"

namespace ballast::sim {

/// A file of an OutputDirectory that is written piece by piece, for what is too large to hold. It
/// appears with its directory. Throws OutputError when it cannot be written.
class OutputFile {
 public:
  OutputFile(OutputDirectory& directory, const std::filesystem::path& path);

  void append(std::string_view bytes);
  /// Call it before the directory's commit.
  void close();

 private:
  void check() const;

  OutputDirectory& directory_;
  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace ballast::sim
