#include "sim/recordings/routing_row.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "sim/text/printable.h"

namespace ballast::sim {
namespace {

using nlohmann::json;

/// Larger indices are damage, and would overflow the arithmetic on cells.
constexpr std::int64_t max_token = std::int64_t{1} << 40;
constexpr double weight_tolerance = 0.005;

[[noreturn]] void bad_field(const std::string& field, const std::string& why) {
  throw RowFault(ProblemKind::bad_field, "field '" + field + "' " + why);
}

/// A value as it may stand in a message.
std::string shown(const json& value) {
  return printable(value.dump(-1, ' ', false, json::error_handler_t::replace), 40);
}

const json& required(const json& object, const std::string& field) {
  const json* value = find_field(object, field);
  if (value == nullptr) bad_field(field, "is missing");
  return *value;
}

/// An integer that fits; no number with a fraction, no text.
std::int64_t integer(const json& value, const std::string& field) {
  const bool too_large =
      value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{INT64_MAX};
  if (!value.is_number_integer() || too_large)
    bad_field(field, "is " + shown(value) + ", not an integer");
  return value.get<std::int64_t>();
}

LayerName parse_layer(const json& value, const std::string& field) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number_integer())
    bad_field(field, "is " + shown(value) + ", neither an integer nor a text");
  return integer(value, field);
}

std::vector<std::int64_t> parse_experts(const json& value, const std::string& field) {
  if (!value.is_array()) return {integer(value, field)};
  std::vector<std::int64_t> experts;
  for (const json& expert : value) experts.push_back(integer(expert, field));
  return experts;
}

std::int64_t parse_token(const json& value, const std::string& field) {
  const std::int64_t token = integer(value, field);
  if (token < 0 || token > max_token)
    bad_field(field, "is " + shown(value) + ", not a token index");
  return token;
}

std::vector<double> parse_weights(const json& value, const std::string& field) {
  if (value.is_number()) return {value.get<double>()};
  if (!value.is_array()) bad_field(field, "is " + shown(value) + ", not a list of numbers");
  std::vector<double> weights;
  for (const json& weight : value) {
    if (!weight.is_number()) bad_field(field, "holds " + shown(weight) + ", not a number");
    weights.push_back(weight.get<double>());
  }
  return weights;
}

std::string parse_sequence(const json& object, const std::vector<std::string>& fields) {
  std::string name;
  for (const std::string& field : fields) {
    const json* value = find_field(object, field);
    if (value == nullptr) continue;
    if (!name.empty()) name += '/';
    name += value->is_string() ? value->get<std::string>() : shown(*value);
  }
  return name;
}

}  // namespace

const json* find_field(const json& object, const std::string& field) {
  if (field.starts_with('/')) {
    const json::json_pointer pointer(field);
    return object.contains(pointer) ? &object.at(pointer) : nullptr;
  }
  const auto found = object.find(field);
  return found == object.end() ? nullptr : &*found;
}

RoutingRow parse_row(const json& object, const RowSchema& schema) {
  RoutingRow row;
  row.sequence = parse_sequence(object, schema.sequence);
  if (!schema.layer.empty()) row.layer = parse_layer(required(object, schema.layer), schema.layer);
  row.experts = parse_experts(required(object, schema.experts), schema.experts);
  if (!schema.token.empty()) row.token = parse_token(required(object, schema.token), schema.token);
  const json* weights = schema.weights.empty() ? nullptr : find_field(object, schema.weights);
  if (weights == nullptr) return row;
  row.weights = parse_weights(*weights, schema.weights);
  if (row.weights.size() != row.experts.size()) {
    throw RowFault(ProblemKind::weight_count,
                   counted_noun(static_cast<std::int64_t>(row.weights.size()), "weight") + " for " +
                       counted_noun(static_cast<std::int64_t>(row.experts.size()), "expert"));
  }
  return row;
}

void check_row(const RoutingRow& row, std::size_t experts, std::size_t top_k) {
  if (row.experts.size() != top_k) {
    throw RowFault(
        ProblemKind::wrong_expert_count,
        std::to_string(row.experts.size()) + " where a row has " + std::to_string(top_k));
  }
  for (const std::int64_t expert : row.experts) {
    if (expert < 0 || static_cast<std::uint64_t>(expert) >= experts) {
      throw RowFault(
          ProblemKind::expert_out_of_range,
          "id " + std::to_string(expert) + " where ids are 0 to " + std::to_string(experts - 1));
    }
  }
  std::vector<std::int64_t> sorted = row.experts;
  std::sort(sorted.begin(), sorted.end());
  const auto repeated = std::adjacent_find(sorted.begin(), sorted.end());
  if (repeated != sorted.end()) {
    throw RowFault(ProblemKind::repeated_expert, "id " + std::to_string(*repeated));
  }
}

std::optional<std::string> odd_weights(const RoutingRow& row) {
  if (row.weights.empty()) return std::nullopt;
  for (const double weight : row.weights) {
    if (!(weight >= 0.0 && weight <= 1.0 + weight_tolerance))
      return "a weight is " + fixed(weight, 6);
  }
  const double sum = std::accumulate(row.weights.begin(), row.weights.end(), 0.0);
  if (std::abs(sum - 1.0) <= weight_tolerance) return std::nullopt;
  return "they sum to " + fixed(sum, 6);
}

}  // namespace ballast::sim
