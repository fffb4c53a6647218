#pragma once

#include <nlohmann/json_fwd.hpp>
#include <stdexcept>

namespace ballast::props {

/// JSON with members in the order they were written in.
using Json = nlohmann::ordered_json;

/// A message that is no valid message of the subject protocol: one line that begins with the JSON
/// pointer of what is wrong, and says what would be right.
class ProtocolError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace ballast::props
