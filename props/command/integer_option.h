#pragma once

#include <charconv>
#include <string>

#include "sim/usage_error.h"

namespace ballast::props {

/// The integer that an option's text says. Throws sim::UsageError when it is none within [least, most].
template <class Integer>
Integer integer_option(const std::string& name, const std::string& text, Integer least, Integer most) {
  Integer value = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end || value < least || value > most) {
    throw sim::UsageError("--" + name + " " + text + ": is no integer within " + std::to_string(least) + ".." +
                          std::to_string(most));
  }
  return value;
}

}  // namespace ballast::props
