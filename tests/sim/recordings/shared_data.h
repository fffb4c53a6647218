#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace ballast::sim {

/// The folder of recordings by others, which stays outside the project: BALLAST_SHARED_DATA, or
/// else
/// ../shared/data beside the project. It may not be there; see `SKIP_WITHOUT_SHARED_DATA`.
inline std::string shared_data() {
  const char* folder = std::getenv("BALLAST_SHARED_DATA");
  return folder != nullptr ? folder : BALLAST_SOURCE_DIR "/../shared/data";
}

#define SKIP_WITHOUT_SHARED_DATA()                                        \
  if (!std::filesystem::is_directory(shared_data()))                      \
  GTEST_SKIP() << "the recordings by others are not at " << shared_data() \
               << "; BALLAST_SHARED_DATA may name their folder"

}  // namespace ballast::sim
