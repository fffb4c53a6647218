#include "sim/text/printable.h"

#include <array>
#include <charconv>
#include <cmath>
#include <sstream>
#include <utility>

namespace ballast::sim {
namespace {

bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0u) == 0x80u;
}

/// Bytes of the well-formed UTF-8 sequence at the front of `text`, or 0 when there is none.
std::size_t sequence_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xC2 ? 0
                             : first < 0xE0 ? 2
                             : first < 0xF0 ? 3
                             : first < 0xF5 ? 4
                                            : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(text[i])) return 0;
  }
  return length;
}

bool is_control(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7F;
  // U+0080..U+009F, which terminals may obey as well.
  return first == 0xC2 && static_cast<unsigned char>(sequence[1]) < 0xA0;
}

void append_escaped(std::string& out, std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    out += "\\x";
    out += digits[value >> 4];
    out += digits[value & 15];
  }
}

}  // namespace

std::string printable(std::string_view text, std::size_t max_bytes) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    const std::string_view piece = text.substr(0, length == 0 ? 1 : length);
    if (out.size() + piece.size() > max_bytes) return out + "...";
    if (length == 0 || is_control(piece)) {
      append_escaped(out, piece);
    } else {
      out += piece;
    }
    text.remove_prefix(piece.size());
  }
  return out;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (const char byte : text) width += is_continuation(byte) ? 0 : 1;
  return width;
}

std::string fixed(double value, int digits) {
  if (std::isnan(value)) return "-";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 400> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::fixed, digits)
                       .ptr;
  const std::string text(buffer.data(), end);
  const bool is_zero = text.find_first_not_of("-0.") == std::string::npos;
  return is_zero && text[0] == '-' ? text.substr(1) : text;
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  const std::string margin(indent, ' ');
  std::string out;
  std::string line;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    const bool fits = indent + display_width(line) + 1 + display_width(word) <= width;
    if (!line.empty() && !fits) out += margin + std::exchange(line, "") + '\n';
    line += (line.empty() ? "" : " ") + word;
  }
  return line.empty() ? out : out + margin + line + '\n';
}

}  // namespace ballast::sim
