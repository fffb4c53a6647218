#include "sim/npy/npy_header.h"

#include <charconv>
#include <optional>
#include <stdexcept>

#include "sim/text/printable.h"

namespace ballast::sim {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t prefix_bytes = 8;  ///< magic and version
constexpr std::size_t alignment = 64;

[[noreturn]] void refuse(const std::string& why) {
  throw std::invalid_argument(why);
}

/// Little-endian.
std::size_t number(std::string_view bytes) {
  std::size_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

/// Reads the header's text, a Python dictionary of three known entries.
class Dictionary {
 public:
  explicit Dictionary(std::string_view text) : rest_(text) {}

  NpyHeader read() {
    NpyHeader header;
    bool dtype = false, order = false, shape = false;
    expect('{');
    while (!take('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr") {
        header.dtype = dtype_string();
        dtype = true;
      } else if (key == "fortran_order") {
        header.fortran_order = boolean();
        order = true;
      } else if (key == "shape") {
        header.shape = tuple();
        shape = true;
      } else {
        refuse("its header has the unknown entry '" + printable(key) + "'");
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    if (!dtype || !order || !shape) refuse("its header lacks descr, fortran_order or shape");
    return header;
  }

 private:
  [[noreturn]] void malformed() const {
    refuse("its header cannot be read at \"" + printable(rest_, 20) + "\"");
  }

  void skip_blanks() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  bool take(char c) {
    skip_blanks();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) malformed();
  }

  std::string_view string() {
    skip_blanks();
    const char quote = rest_.empty() ? '\0' : rest_[0];
    const auto end = rest_.find(quote, 1);
    if ((quote != '\'' && quote != '"') || end == std::string_view::npos) malformed();
    const auto text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }

  std::string dtype_string() {
    skip_blanks();
    if (rest_.starts_with('[')) refuse("its values are records, not numbers");
    return std::string(string());
  }

  bool boolean() {
    skip_blanks();
    for (const auto& [word, value] : {std::pair("True", true), std::pair("False", false)}) {
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(std::string_view(word).size());
      return value;
    }
    malformed();
  }

  std::vector<std::size_t> tuple() {
    std::vector<std::size_t> numbers;
    expect('(');
    while (!take(')')) {
      skip_blanks();
      std::size_t value = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
      if (error != std::errc()) malformed();
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      numbers.push_back(value);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return numbers;
  }

  std::string_view rest_;
};

}  // namespace

std::string shape_text(const std::vector<std::size_t>& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}

NpyHeader parse_npy_header(std::string_view bytes) {
  if (!bytes.starts_with(magic)) refuse("it does not begin as a NumPy array file does");
  if (bytes.size() < prefix_bytes) refuse("it ends inside its header");
  const int version = static_cast<unsigned char>(bytes[magic.size()]);
  if (version < 1 || version > 3) {
    refuse("its format version is " + std::to_string(version) + ", not 1, 2 or 3");
  }
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  if (bytes.size() < prefix_bytes + length_bytes) refuse("it ends inside its header");
  const std::size_t length = number(bytes.substr(prefix_bytes, length_bytes));
  const std::string_view rest = bytes.substr(prefix_bytes + length_bytes);
  if (length > rest.size()) refuse("it ends inside its header");
  NpyHeader header = Dictionary(rest.substr(0, length)).read();
  header.data_begin = prefix_bytes + length_bytes + length;
  return header;
}

std::string npy_header(const std::string& dtype, const std::vector<std::size_t>& shape) {
  std::string text =
      "{'descr': '" + dtype + "', 'fortran_order': False, 'shape': " + shape_text(shape) + ", }";
  const std::size_t unpadded = prefix_bytes + 2 + text.size() + 1;
  text.append((alignment - unpadded % alignment) % alignment, ' ');
  text += '\n';
  std::string header(magic);
  header +=
      {'\1', '\0', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return header + text;
}

}  // namespace ballast::sim
