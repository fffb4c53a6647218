#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "core/metrics/moe_metrics.h"

namespace ballast {

/// A tensor handed to the caller of a training call: its values, row-major, whose type is the dtype
/// (int64 or float32), and its shape, whose product is the number of values. Source:
/// tinker.types.TensorData.
struct TensorData {
  std::variant<std::vector<std::int64_t>, std::vector<float>> data;
  std::vector<std::size_t> shape;

  friend bool operator==(const TensorData&, const TensorData&) = default;
};

/// What the loss function gives back for one datum, by field name (`logprobs`, ...).
using LossFnOutput = std::map<std::string, TensorData>;

/// The result of one forward and backward pass over a batch of data. Source:
/// tinker.types.ForwardBackwardOutput.
struct ForwardBackwardOutput {
  /// The class name of the records, e.g. `TorchLossReturn`.
  std::string loss_fn_output_type;
  /// One record per datum, in the order of the data.
  std::vector<LossFnOutput> loss_fn_outputs;
  /// Training metrics by `name:reduction`; an MoE model's has the keys of metric_key::moe.
  Metrics metrics;

  friend bool operator==(const ForwardBackwardOutput&, const ForwardBackwardOutput&) = default;
};

}  // namespace ballast
