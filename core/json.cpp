#include "core/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

namespace ballast {

namespace {

using nlohmann::json;

// ---- Writing

template <class Json>
Json number_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

template <class Json, class T>
Json value_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

template <class Json>
Json float_or_null(std::optional<float> value) {
  return value ? number_or_null<Json>(shortest_double(*value)) : Json(nullptr);
}

template <class Json, class Floats>
Json floats(const Floats& values) {
  Json out = Json::array();
  for (const auto& value : values) out.push_back(float_or_null<Json>(value));
  return out;
}

// ---- Reading

/// A JSON value and where it stands.
struct Node {
  const json& value;
  std::string pointer;

  Node item(std::size_t index) const {
    return {value[index], pointer + "/" + std::to_string(index)};
  }
  Node member(const std::string& key) const {
    return {value[key], (json::json_pointer(pointer) / key).to_string()};
  }
};

[[noreturn]] void refuse(const Node& node, const std::string& should) {
  throw std::invalid_argument((node.pointer.empty() ? "(top)" : node.pointer) + ": is " +
                              node.value.type_name() + ", should be " + should);
}

std::string text(const Node& node, const std::string& should) {
  if (!node.value.is_string()) refuse(node, should);
  return node.value.get<std::string>();
}

void require_array(const Node& node, const std::string& should) {
  if (!node.value.is_array()) refuse(node, should);
}

void require_object(const Node& node, const std::string& should) {
  if (!node.value.is_object()) refuse(node, should);
}

/// An object with all of the `required` members, and no others but the `optional` ones.
void require_members(const Node& node, std::initializer_list<std::string_view> required,
                     std::initializer_list<std::string_view> optional, const std::string& should) {
  require_object(node, should);
  for (const std::string_view key : required) {
    if (!node.value.contains(key)) {
      throw std::invalid_argument(node.pointer + "/" + std::string(key) + ": is missing from " +
                                  should);
    }
  }
  for (const auto& [key, value] : node.value.items()) {
    const auto is_key = [&key = key](std::string_view known) { return known == key; };
    if (std::ranges::none_of(required, is_key) && std::ranges::none_of(optional, is_key)) {
      throw std::invalid_argument(node.member(key).pointer + ": is no member of " + should);
    }
  }
}

double number(const Node& node) {
  if (node.value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (!node.value.is_number()) refuse(node, "a number, or null for one that is not finite");
  return node.value.get<double>();
}

float float32(const Node& node) {
  // The shortest decimal of the largest float lies above it; half a step above it rounding gives infinity.
  constexpr double rounds_to_infinity = 0x1.ffffffp127;
  const double value = number(node);
  if (std::abs(value) >= rounds_to_infinity) {
    throw std::invalid_argument(node.pointer + ": " + node.value.dump() +
                                " is outside the range of a float32");
  }
  return static_cast<float>(value);
}

std::int64_t int64(const Node& node) {
  const bool too_large = node.value.is_number_unsigned() &&
                         node.value.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max();
  if (!node.value.is_number_integer() || too_large)
    refuse(node, "an integer in the range of an int64");
  return node.value.get<std::int64_t>();
}

template <class T>
std::vector<T> values(const Node& node, T (*read)(const Node&)) {
  require_array(node, "an array of values");
  std::vector<T> out;
  out.reserve(node.value.size());
  for (std::size_t i = 0; i < node.value.size(); ++i) out.push_back(read(node.item(i)));
  return out;
}

std::size_t extent(const Node& node) {
  const std::int64_t value = int64(node);
  if (value < 0) {
    throw std::invalid_argument(node.pointer + ": is " + node.value.dump() +
                                ", should be a number of elements, at least 0");
  }
  return static_cast<std::size_t>(value);
}

/// The product of the extents equals `count`; an extent of 0 makes it 0, and large ones do not wrap
/// around.
bool holds(const std::vector<std::size_t>& shape, std::size_t count) {
  if (std::ranges::find(shape, std::size_t{0}) != shape.end()) return count == 0;
  std::size_t rest = count;
  for (const std::size_t extent_of_dimension : shape) {
    if (rest % extent_of_dimension != 0) return false;
    rest /= extent_of_dimension;
  }
  return count != 0 && rest == 1;
}

std::vector<std::size_t> shape(const Node& tensor, std::size_t count) {
  if (!tensor.value.contains("shape") || tensor.value["shape"].is_null()) return {count};
  const Node node = tensor.member("shape");
  auto out = values(node, extent);
  if (!holds(out, count)) {
    throw std::invalid_argument(node.pointer + ": " + node.value.dump() + " is no shape of " +
                                std::to_string(count) + " values");
  }
  return out;
}

TensorData tensor_data(const Node& node) {
  require_members(node, {"data", "dtype"}, {"shape"}, "a tensor {data, dtype, shape}");
  const std::string dtype = text(node.member("dtype"), "\"int64\" or \"float32\"");
  TensorData out;
  if (dtype == "int64") {
    out.data = values(node.member("data"), int64);
  } else if (dtype == "float32") {
    out.data = values(node.member("data"), float32);
  } else {
    throw std::invalid_argument(node.member("dtype").pointer + ": is \"" + dtype +
                                "\", should be \"int64\" or \"float32\"");
  }
  out.shape = shape(node, node.value["data"].size());
  return out;
}

LossFnOutput loss_fn_output(const Node& node) {
  require_object(node, "a record of tensors by field name");
  LossFnOutput out;
  for (const auto& [field, value] : node.value.items())
    out[field] = tensor_data(node.member(field));
  return out;
}

std::vector<LossFnOutput> loss_fn_outputs(const Node& node) {
  require_array(node, "an array with one record per datum");
  std::vector<LossFnOutput> out;
  for (std::size_t i = 0; i < node.value.size(); ++i) out.push_back(loss_fn_output(node.item(i)));
  return out;
}

Metrics metrics(const Node& node) {
  require_object(node, "an object of numbers by metric key");
  Metrics out;
  for (const auto& [key, value] : node.value.items()) out[key] = number(node.member(key));
  return out;
}

}  // namespace

double shortest_double(float value) {
  if (!std::isfinite(value)) return value;
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  double decimal = 0.0;
  std::from_chars(digits.data(), end, decimal);
  // Rounding to double and then to float may in principle end one float off the decimal's own.
  return static_cast<float>(decimal) == value ? decimal : value;
}

template <class Json>
void to_json(Json& out, const LayerRecord& record) {
  out = Json{{"expert_load_counts", record.expert_load_counts},
             {"tokens", record.tokens},
             {"max_load_over_mean", value_or_null<Json>(record.max_load_over_mean)},
             {"zero_load_experts", value_or_null<Json>(record.zero_load_experts)},
             {"biases", floats<Json>(record.biases)}};
}

template <class Json>
void to_json(Json& out, const DiagnosticsSnapshot& snapshot) {
  out = Json::object();
  for (const auto& [layer, record] : snapshot.layers) out[layer] = record;
}

template <class Json>
void to_json(Json& out, const TensorData& tensor) {
  const auto* const integers = std::get_if<std::vector<std::int64_t>>(&tensor.data);
  out = Json::object();
  out["data"] = integers != nullptr ? Json(*integers)
                                    : floats<Json>(std::get<std::vector<float>>(tensor.data));
  out["dtype"] = integers != nullptr ? "int64" : "float32";
  out["shape"] = tensor.shape;
}

template <class Json>
void to_json(Json& out, const ForwardBackwardOutput& output) {
  Json records = Json::array();
  for (const LossFnOutput& record : output.loss_fn_outputs) {
    Json fields = Json::object();
    for (const auto& [field, tensor] : record) fields[field] = tensor;
    records.push_back(std::move(fields));
  }
  Json metrics = Json::object();
  for (const auto& [key, value] : output.metrics) metrics[key] = number_or_null<Json>(value);
  out = Json::object();
  out["loss_fn_output_type"] = output.loss_fn_output_type;
  out["loss_fn_outputs"] = std::move(records);
  out["metrics"] = std::move(metrics);
}

template void to_json(nlohmann::json&, const LayerRecord&);
template void to_json(nlohmann::json&, const DiagnosticsSnapshot&);
template void to_json(nlohmann::json&, const TensorData&);
template void to_json(nlohmann::json&, const ForwardBackwardOutput&);
template void to_json(nlohmann::ordered_json&, const LayerRecord&);
template void to_json(nlohmann::ordered_json&, const DiagnosticsSnapshot&);
template void to_json(nlohmann::ordered_json&, const TensorData&);
template void to_json(nlohmann::ordered_json&, const ForwardBackwardOutput&);

void from_json(const json& value, TensorData& tensor) {
  tensor = tensor_data({value, ""});
}

void from_json(const json& value, ForwardBackwardOutput& output) {
  const Node node{value, ""};
  require_members(node, {"loss_fn_output_type", "loss_fn_outputs", "metrics"}, {},
                  "a ForwardBackwardOutput");
  ForwardBackwardOutput read;
  read.loss_fn_output_type =
      text(node.member("loss_fn_output_type"), "a string, the class name of the records");
  read.loss_fn_outputs = loss_fn_outputs(node.member("loss_fn_outputs"));
  read.metrics = metrics(node.member("metrics"));
  output = std::move(read);
}

}  // namespace ballast
