#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/recordings/recorded_routing.h"

namespace ballast::sim {

/// The choice of one token in one layer.
struct RoutingRow {
  std::string sequence;  ///< the request, problem or such that counts its own tokens; may be empty
  LayerName layer;
  std::optional<std::int64_t> token;  ///< index in the sequence
  std::vector<std::int64_t> experts;  ///< chosen ids, `[top_k]`
  std::vector<double> weights;        ///< `[top_k]`, or empty when none are recorded
};

/// Which fields of a JSON object hold a row. A field is a key of the object, or with a "/" in front
/// a JSON pointer into it; an empty one is not recorded.
struct RowSchema {
  std::string layer;    ///< a number or a text; when not recorded, all rows are layer 0
  std::string experts;  ///< a list of ids, or one id
  std::string token;
  std::string weights;
  std::vector<std::string> sequence;  ///< fields that together name the sequence
};

/// A row that cannot be counted, and why.
struct RowFault : std::runtime_error {
  RowFault(ProblemKind kind_, const std::string& detail)
      : std::runtime_error(detail), kind(kind_) {}
  ProblemKind kind;
};

/// The value of a schema's field in an object, or null when it is not there.
const nlohmann::json* find_field(const nlohmann::json& object, const std::string& field);

/// The row in an object. Throws RowFault (bad_field) for a field that is missing or has another
/// type. Weights and sequence fields may be missing.
RoutingRow parse_row(const nlohmann::json& object, const RowSchema& schema);

/// Throws RowFault unless the row has `top_k` different ids in [0, experts) and, if any, as many
/// finite weights.
void check_row(const RoutingRow& row, std::size_t experts, std::size_t top_k);

/// What is odd about the weights of a row, or nothing: they should be in [0, 1] and sum to 1 within
/// 0.005, the precision of bf16. (Recorded raw softmax weights sum to less.) The choice may be
/// right all the same.
std::optional<std::string> odd_weights(const RoutingRow& row);

}  // namespace ballast::sim
