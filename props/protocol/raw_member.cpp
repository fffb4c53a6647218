#include "props/protocol/raw_member.h"

#include <cstddef>

namespace ballast::props {

namespace {

/// The position after the string that begins with the quotation mark at `at`.
std::size_t after_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at + 1;
}

/// The position of the comma or bracket that ends the value that begins at `at`.
std::size_t after_value(std::string_view text, std::size_t at) {
  int depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (depth == 0 && (c == ',' || c == '}' || c == ']')) return at;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    at = c == '"' ? after_string(text, at) : at + 1;
  }
  return at;
}

}  // namespace

std::string raw_member(std::string_view object, std::string_view key) {
  std::string found = "null";
  std::size_t at = object.find('"');
  while (at < object.size()) {
    const std::size_t key_end = after_string(object, at);
    const std::size_t value = object.find(':', key_end) + 1;
    const std::size_t value_end = after_value(object, value);
    if (object.substr(at + 1, key_end - at - 2) == key)
      found = object.substr(value, value_end - value);
    at = object.find('"', value_end);
  }
  return found;
}

}  // namespace ballast::props
