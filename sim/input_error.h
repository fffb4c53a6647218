#pragma once

#include <stdexcept>
#include <string>

namespace ballast::sim {

/// The four things an error about bad input says.
struct InputFault {
  std::string what;  ///< what cannot be done: "cannot read the recording"
  std::string
      where;        ///< file, and line or JSON pointer: "routes.jsonl:12", "skew.json#/model/top_k"
  std::string why;  ///< what is wrong there: "the line ends inside a JSON value"
  std::string right;  ///< what would be right: "one JSON object a line"; may be empty
};

/// Input from outside that cannot be used. The command ends with exit code 4 and `what()`, which is
/// one line: "WHERE: WHAT: WHY; RIGHT". Control characters in any part are escaped.
class InputError : public std::runtime_error {
 public:
  explicit InputError(InputFault fault);
  const InputFault& fault() const { return fault_; }

 private:
  InputFault fault_;
};

}  // namespace ballast::sim
