#include "props/protocol/node.h"

#include <cmath>
#include <limits>

#include "core/json.h"
#include "sim/text/printable.h"

namespace ballast::props {

namespace {

/// A value as an error line shows it: whole when it is small.
std::string shown(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  return sim::printable(value.dump(-1, ' ', false, Json::error_handler_t::replace), 60);
}

}  // namespace

std::string Node::pointer() const {
  if (parent_ == nullptr) return "(top)";
  const std::string above = parent_->parent_ == nullptr ? "" : parent_->pointer();
  return above + "/" + (key_ != nullptr ? sim::printable(key_, 60) : std::to_string(index_));
}

void Node::refuse(const std::string& should) const {
  throw ProtocolError(pointer() + ": is " + shown(value_) + ", should be " + should);
}

Node Node::member(const char* key) const {
  require_object(*this);
  const auto found = value_.find(key);
  if (found == value_.end()) {
    const std::string above = parent_ == nullptr ? "" : pointer();
    throw ProtocolError(above + "/" + key + ": is missing");
  }
  return Node(*found, this, key, 0);
}

void require_object(const Node& node) {
  if (!node.value().is_object()) node.refuse("an object");
}

void require_array(const Node& node) {
  if (!node.value().is_array()) node.refuse("an array");
}

std::int64_t read_integer(const Node& node) {
  const Json& value = node.value();
  const bool too_large = value.is_number_unsigned() &&
                         value.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max();
  if (!value.is_number_integer() || too_large) node.refuse("an integer of at most 64 bits");
  return value.get<std::int64_t>();
}

std::size_t read_size(const Node& node) {
  const std::int64_t value = read_integer(node);
  if (value < 0) node.refuse("an integer, at least 0");
  return static_cast<std::size_t>(value);
}

double read_number(const Node& node) {
  const Json& value = node.value();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) {
    const auto& word = value.get_ref<const std::string&>();
    if (word == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (word == "Infinity") return std::numeric_limits<double>::infinity();
    if (word == "-Infinity") return -std::numeric_limits<double>::infinity();
  }
  node.refuse(R"(a number, or "NaN", "Infinity" or "-Infinity")");
}

float read_float(const Node& node) {
  // The shortest decimal of the largest float lies above it; what rounds to it is below half a step more.
  constexpr double rounds_to_infinity = 0x1.ffffffp127;
  const double value = read_number(node);
  if (std::isfinite(value) && std::abs(value) >= rounds_to_infinity) node.refuse("within the range of fp32");
  return static_cast<float>(value);
}

bool read_boolean(const Node& node) {
  if (!node.value().is_boolean()) node.refuse("true or false");
  return node.value().get<bool>();
}

std::string read_text(const Node& node) {
  if (!node.value().is_string()) node.refuse("a string");
  return node.value().get<std::string>();
}

Json number_json(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

Json float_json(float value) {
  // All digits of the double, not the shortest that give the float: who reads it in double has the same number.
  return number_json(static_cast<double>(value));
}

}  // namespace ballast::props
