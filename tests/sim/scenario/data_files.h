#pragma once

#include <string>

#include "sim/read_file.h"
#include "tests/support/paths.h"

namespace ballast::sim {

inline std::string source_file(const std::string& name) {
  return test::source_dir() + "/" + name;
}

inline std::string source_text(const std::string& name) {
  return read_file(source_file(name), "cannot read a file of the tests", std::size_t{1} << 24);
}

inline std::string sample(const std::string& name) {
  return source_text("tests/data/scenarios/" + name);
}

}  // namespace ballast::sim
