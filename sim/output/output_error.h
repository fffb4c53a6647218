#pragma once

#include <stdexcept>
#include <string>

namespace ballast::sim {

/// Results that cannot be written. The command ends with exit code 70 and this one line.
class OutputError : public std::runtime_error {
 public:
  explicit OutputError(const std::string& line) : std::runtime_error(line) {}
};

}  // namespace ballast::sim
