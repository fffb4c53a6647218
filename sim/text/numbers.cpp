#include "sim/text/numbers.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "sim/text/printable.h"

namespace ballast::sim {

namespace {

template <class... Format>
std::string written(double value, Format... format) {
  if (value == 0.0) value = 0.0;  // no "-0"
  std::array<char, 400> buffer;
  return {buffer.data(),
          std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format...).ptr};
}

}  // namespace

std::string compact(double value, std::size_t width, int digits) {
  if (!std::isfinite(value)) return written(value);
  for (int left = digits; left >= 0; --left) {
    if (auto text = fixed(value, left); text.size() <= width) return text;
  }
  for (int left = digits; left > 0; --left) {
    if (auto text = written(value, std::chars_format::scientific, left); text.size() <= width)
      return text;
  }
  return written(value, std::chars_format::scientific, 0);
}

std::string shortest(double value) {
  return written(value);
}

std::string significant(double value, int digits) {
  return written(value, std::chars_format::general, digits);
}

std::string in_words(std::uint64_t count) {
  if (count < 1000) return std::to_string(count);
  static constexpr std::array<std::pair<double, const char*>, 4> scales = {
      {{1e12, " trillion"}, {1e9, " billion"}, {1e6, " million"}, {1e3, " thousand"}}};
  const auto number = static_cast<double>(count);
  for (const auto& [scale, word] : scales) {
    // 999.6 thousand is said as 1.0 million.
    if (number / scale < 0.9995) continue;
    const double scaled = number / scale;
    return fixed(scaled, scaled < 9.95 ? 1 : 0) + word;
  }
  return std::to_string(count);
}

std::string counted(std::uint64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace ballast::sim
