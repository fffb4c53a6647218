#pragma once

#include <stdexcept>
#include <string>

#include "sim/text/printable.h"

namespace ballast::sim {

/// Results that cannot be written: a full disk, a closed stdout. The command ends with exit code 70
/// and this one line.
class OutputError : public std::runtime_error {
 public:
  explicit OutputError(const std::string& line) : std::runtime_error(printable(line, 1000)) {}
};

}  // namespace ballast::sim
