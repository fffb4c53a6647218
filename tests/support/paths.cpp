#include "tests/support/paths.h"

#include <cstdlib>

namespace ballast::test {

std::string source_dir() { return BALLAST_SOURCE_DIR; }
std::string command_file() { return BALLAST_BINARY; }

std::string shared_data_dir() {
  const char* set = std::getenv("BALLAST_SHARED_DATA");
  return set != nullptr ? set : source_dir() + "/../shared/data";
}

}  // namespace ballast::test
