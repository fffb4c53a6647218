#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/diagnostics/moe_diagnostics.h"
#include "core/metrics/forward_backward_output.h"

/// JSON of the core's records, found by nlohmann's conversions (`json j = record`,
/// `j.get<Record>()`), for `nlohmann::json` and, with members in the order written here,
/// `nlohmann::ordered_json`.
///
/// A nonfinite number is null. Floats are written with the fewest decimals that read back as the
/// same float.
namespace ballast {

/// The double that prints as the shortest decimal that reads back as `value`: 0.1f gives 0.1, not
/// 0.10000000149011612. Converted back to float it is `value` again, always.
double shortest_double(float value);

/// {"expert_load_counts": [..], "tokens": n, "max_load_over_mean": x or null, "zero_load_experts":
/// n or null, "biases": [x or null, ..]}
template <class Json>
void to_json(Json& json, const LayerRecord& record);

/// {layer name: record}
template <class Json>
void to_json(Json& json, const DiagnosticsSnapshot& snapshot);

/// {"data": [..], "dtype": "int64" or "float32", "shape": [..]}
template <class Json>
void to_json(Json& json, const TensorData& tensor);

/// {"loss_fn_output_type": "..", "loss_fn_outputs": [{field: tensor}], "metrics": {key: number}}
template <class Json>
void to_json(Json& json, const ForwardBackwardOutput& output);

/// Read what `to_json` wrote, and the same records from elsewhere. A null number is NaN. A missing
/// or null shape means one dimension. Everything else must be as above, without other members.
/// Errors: std::invalid_argument with one line that begins with the JSON pointer of what is wrong.
void from_json(const nlohmann::json& json, TensorData& tensor);
void from_json(const nlohmann::json& json, ForwardBackwardOutput& output);

}  // namespace ballast
