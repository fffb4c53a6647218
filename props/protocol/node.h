#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "props/protocol/json.h"

namespace ballast::props {

/// A JSON value that is being read, and where it stands in its message. A node refers to the node it
/// was taken from, which must outlive it: the pointer is put together only for an error, since most
/// messages have none and some have thousands of numbers.
///
/// Every reading function throws ProtocolError when the value is of another type.
class Node {
 public:
  explicit Node(const Json& value) : value_(value) {}

  const Json& value() const { return value_; }
  /// "/weights/0/1"; "(top)" for the whole message.
  std::string pointer() const;
  /// Throws ProtocolError: POINTER: is WHAT IT IS, should be WHAT WOULD BE RIGHT.
  [[noreturn]] void refuse(const std::string& should) const;

  bool has(const char* key) const { return value_.is_object() && value_.contains(key); }
  /// A member that must be there. The value must be an object.
  Node member(const char* key) const;
  /// The same for a key from outside, which must outlive the node.
  Node member(const std::string& key) const { return member(key.c_str()); }
  /// An item of an array that has it.
  Node item(std::size_t index) const { return Node(value_[index], this, nullptr, index); }
  bool is_null() const { return value_.is_null(); }

 private:
  Node(const Json& value, const Node* parent, const char* key, std::size_t index)
      : value_(value), parent_(parent), key_(key), index_(index) {}

  const Json& value_;
  const Node* parent_ = nullptr;
  const char* key_ = nullptr;
  std::size_t index_ = 0;
};

std::int64_t read_integer(const Node& node);
/// An integer that is not negative.
std::size_t read_size(const Node& node);
/// A number, or one of the strings "NaN", "Infinity", "-Infinity".
double read_number(const Node& node);
float read_float(const Node& node);
bool read_boolean(const Node& node);
std::string read_text(const Node& node);
void require_object(const Node& node);
void require_array(const Node& node);

/// An array of values that `read` reads.
template <class Read>
auto read_list(const Node& node, Read read) {
  require_array(node);
  std::vector<decltype(read(node))> out;
  out.reserve(node.value().size());
  for (std::size_t i = 0; i < node.value().size(); ++i) out.push_back(read(node.item(i)));
  return out;
}

/// An array of arrays of values that `read` reads.
template <class Read>
auto read_table(const Node& node, Read read) {
  return read_list(node, [&](const Node& row) { return read_list(row, read); });
}

/// The number as the protocol writes it: JSON, or a string where JSON has none.
Json number_json(double value);
/// The same in the fewest decimals that read back as this float.
Json float_json(float value);

}  // namespace ballast::props
