#pragma once

#include <stdexcept>
#include <string>

#include "sim/text/printable.h"

namespace ballast::sim {

/// A command line that makes no sense. The command ends with exit code 3 and this one line, which
/// says what is wrong and what would be right.
class UsageError : public std::runtime_error {
 public:
  explicit UsageError(const std::string& line) : std::runtime_error(printable(line, 1000)) {}
};

}  // namespace ballast::sim
