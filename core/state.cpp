#include "core/state.h"

#include <bit>
#include <cstring>
#include <stdexcept>

namespace ballast {

static_assert(std::endian::native == std::endian::little, "state files are little-endian");

namespace {

constexpr char magic[8] = {'B', 'L', 'S', 'T', 'A', 'T', 'E', '1'};

void append(std::vector<std::uint8_t>& out, const void* data, std::size_t size) {
  const std::size_t before = out.size();
  out.resize(before + size);
  if (size != 0) std::memcpy(out.data() + before, data, size);
}

void append_size(std::vector<std::uint8_t>& out, std::size_t value) {
  const auto fixed = static_cast<std::uint64_t>(value);
  append(out, &fixed, sizeof fixed);
}

/// Reads what `append` wrote and refuses to read past the end.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool at_end() const { return bytes_.empty(); }

  void read(void* out, std::size_t size) {
    if (size > bytes_.size()) throw std::invalid_argument("state: the data end too early");
    if (size != 0) std::memcpy(out, bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
  }

  std::size_t read_size() {
    std::uint64_t value = 0;
    read(&value, sizeof value);
    return value;
  }

  std::string read_string() {
    const std::size_t size = read_size();
    if (size > bytes_.size()) throw std::invalid_argument("state: a name reaches past the end");
    std::string text(size, '\0');
    read(text.data(), size);
    return text;
  }

  template <class T>
  std::vector<T> read_values() {
    const std::size_t count = read_size();
    if (count > bytes_.size() / sizeof(T)) {
      throw std::invalid_argument("state: an entry reaches past the end");
    }
    std::vector<T> values(count);
    read(values.data(), count * sizeof(T));
    return values;
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

StateDict::Values read_entry(ByteReader& reader, std::size_t type) {
  switch (type) {
    case 0: return reader.read_values<float>();
    case 1: return reader.read_values<double>();
    case 2: return reader.read_values<std::int64_t>();
    case 3: return reader.read_values<std::uint8_t>();
    default: throw std::invalid_argument("state: an entry has an unknown type");
  }
}

}  // namespace

std::vector<std::uint8_t> StateDict::to_bytes() const {
  std::vector<std::uint8_t> out;
  append(out, magic, sizeof magic);
  append_size(out, entries_.size());
  for (const auto& [name, values] : entries_) {
    append_size(out, name.size());
    append(out, name.data(), name.size());
    append_size(out, values.index());
    std::visit(
        [&](const auto& typed) {
          append_size(out, typed.size());
          append(out, typed.data(), typed.size() * sizeof typed[0]);
        },
        values);
  }
  return out;
}

StateDict StateDict::from_bytes(std::span<const std::uint8_t> bytes) {
  ByteReader reader(bytes);
  char start[sizeof magic];
  reader.read(start, sizeof start);
  if (std::memcmp(start, magic, sizeof magic) != 0) {
    throw std::invalid_argument("state: this is not a saved state of version 1");
  }
  StateDict state;
  const std::size_t count = reader.read_size();
  for (std::size_t i = 0; i < count; ++i) {
    std::string name = reader.read_string();
    const std::size_t type = reader.read_size();
    const bool added = state.entries_.emplace(std::move(name), read_entry(reader, type)).second;
    if (!added) throw std::invalid_argument("state: a name stands twice");
  }
  if (!reader.at_end()) throw std::invalid_argument("state: bytes follow the last entry");
  return state;
}

const StateDict::Values& StateDict::find(const std::string& name) const {
  const auto entry = entries_.find(name);
  if (entry == entries_.end()) throw std::out_of_range("state: there is no entry \"" + name + "\"");
  return entry->second;
}

void StateDict::throw_wrong_type(const std::string& name) {
  throw std::invalid_argument("state: entry \"" + name + "\" has another type");
}

void StateDict::throw_wrong_size(const std::string& name, std::size_t is, std::size_t should) {
  throw std::invalid_argument("state: entry \"" + name + "\" has " + std::to_string(is) +
                              " values, not " + std::to_string(should));
}

}  // namespace ballast
