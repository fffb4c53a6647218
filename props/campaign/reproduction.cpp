#include "props/campaign/reproduction.h"

#include <charconv>
#include <string_view>

namespace ballast::props {

namespace {

template <class Integer>
std::optional<Integer> parse_integer(std::string_view digits) {
  Integer value = 0;
  const char* const end = digits.data() + digits.size();
  const auto result = std::from_chars(digits.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

}  // namespace

std::string Reproduction::text() const {
  return law + ":" + std::to_string(seed) + ":" + std::to_string(index);
}

std::optional<Reproduction> parse_reproduction(const std::string& text) {
  const std::size_t second = text.rfind(':');
  if (second == std::string::npos || second == 0) return std::nullopt;
  const std::size_t first = text.rfind(':', second - 1);
  if (first == std::string::npos || first == 0) return std::nullopt;
  const std::string_view view = text;
  const auto seed = parse_integer<std::uint64_t>(view.substr(first + 1, second - first - 1));
  const auto index = parse_integer<std::size_t>(view.substr(second + 1));
  if (!seed || !index) return std::nullopt;
  return Reproduction{.law = text.substr(0, first), .seed = *seed, .index = *index};
}

std::size_t case_size(std::size_t index) {
  constexpr std::size_t sizes = 101;  // a prime, so that steps of three meet every size
  return 3 * (index % sizes) % sizes;
}

Case draw_case(const Law& law, std::uint64_t seed, std::size_t index) {
  Stream stream = Stream(seed).child("law").child(law.id).child(index);
  return law.generate(stream, case_size(index));
}

}  // namespace ballast::props
