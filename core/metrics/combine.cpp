#include "core/metrics/combine.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "core/arithmetic/reductions.h"

namespace ballast {

namespace {

/// One metric over all chunks.
struct Column {
  const std::string& key;
  std::vector<double> values;   // [chunks]
  std::vector<double> weights;  // [chunks], data in each
};

[[noreturn]] void refuse(const std::string& key, std::size_t chunk, const std::string& why) {
  throw std::invalid_argument("metric \"" + key + "\" of chunk " + std::to_string(chunk) + ": " +
                              why);
}

bool any_nan(const std::vector<double>& values) {
  return std::any_of(values.begin(), values.end(), [](double x) { return std::isnan(x); });
}

// Adding +0 turns a -0 into +0 and changes nothing else.
double min(const Column& column) {
  if (any_nan(column.values)) return std::numeric_limits<double>::quiet_NaN();
  return *std::min_element(column.values.begin(), column.values.end()) + 0.0;
}

double max(const Column& column) {
  if (any_nan(column.values)) return std::numeric_limits<double>::quiet_NaN();
  return *std::max_element(column.values.begin(), column.values.end()) + 0.0;
}

double mean(const Column& column) {
  const double total_weight = arithmetic::sum(column.weights);
  if (total_weight == 0.0) {
    refuse(column.key, 0,
           "a mean weighted by the number of loss_fn_outputs, and no chunk has any; at least one "
           "must");
  }
  double weighted = 0.0;
  for (std::size_t chunk = 0; chunk < column.values.size(); ++chunk) {
    weighted += column.weights[chunk] * column.values[chunk];
  }
  return std::clamp(weighted / total_weight, min(column), max(column));
}

/// The output function of SplitMix64 (Steele, Lea, Flood, 2014): a bijection that spreads every
/// bit.
std::uint64_t mix(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

double hash_unordered(const Column& column) {
  std::vector<double> integers;
  for (std::size_t chunk = 0; chunk < column.values.size(); ++chunk) {
    const double value = column.values[chunk];
    if (!std::isfinite(value)) {
      refuse(column.key, chunk, std::to_string(value) + " has no hash; the value must be finite");
    }
    integers.push_back(std::trunc(value) + 0.0);
  }
  std::sort(integers.begin(), integers.end());
  std::uint64_t hash = 0;
  for (const double integer : integers) {
    hash = mix(hash + 0x9e3779b97f4a7c15 + std::bit_cast<std::uint64_t>(integer));
  }
  return static_cast<double>(hash >> 11);
}

void reduce_unique(const Column& column, Metrics& out) {
  out[column.key] = column.values[0];
  for (std::size_t chunk = 1; chunk < column.values.size(); ++chunk) {
    out[column.key + "_" + std::to_string(chunk)] = column.values[chunk];
  }
}

using Reduction = void (*)(const Column&, Metrics&);

/// The reduction of that name, or null.
Reduction find_reduction(std::string_view name) {
  if (name == "mean") return [](const Column& c, Metrics& out) { out[c.key] = mean(c); };
  if (name == "slack") return [](const Column& c, Metrics& out) { out[c.key] = max(c) - mean(c); };
  if (name == "sum")
    return [](const Column& c, Metrics& out) { out[c.key] = arithmetic::sum(c.values); };
  if (name == "min") return [](const Column& c, Metrics& out) { out[c.key] = min(c); };
  if (name == "max") return [](const Column& c, Metrics& out) { out[c.key] = max(c); };
  if (name == "unique") return reduce_unique;
  if (name == "hash_unordered") {
    return [](const Column& c, Metrics& out) { out[c.key] = hash_unordered(c); };
  }
  return nullptr;
}

std::string_view suffix(const std::string& key) {
  if (std::count(key.begin(), key.end(), ':') != 1) {
    refuse(key, 0, "a key is a name and a reduction with one ':' between, such as \"loss:mean\"");
  }
  return std::string_view(key).substr(key.find(':') + 1);
}

/// The metric's values and weights, or nothing if a chunk lacks it.
std::optional<Column> gather(const std::string& key,
                             std::span<const ForwardBackwardOutput> chunks) {
  Column column{key, {}, {}};
  for (const ForwardBackwardOutput& chunk : chunks) {
    const auto found = chunk.metrics.find(key);
    if (found == chunk.metrics.end()) return std::nullopt;
    column.values.push_back(found->second);
    column.weights.push_back(static_cast<double>(chunk.loss_fn_outputs.size()));
  }
  return column;
}

Metrics combine_metrics(std::span<const ForwardBackwardOutput> chunks) {
  Metrics combined;
  for (const auto& [key, first_value] : chunks.front().metrics) {
    const Reduction reduce = find_reduction(suffix(key));
    if (reduce == nullptr) continue;
    if (const auto column = gather(key, chunks)) reduce(*column, combined);
  }
  return combined;
}

}  // namespace

ForwardBackwardOutput combine(std::span<const ForwardBackwardOutput> chunks) {
  if (chunks.empty()) return {};
  ForwardBackwardOutput combined;
  combined.loss_fn_output_type = chunks.front().loss_fn_output_type;
  combined.metrics = combine_metrics(chunks);
  for (const ForwardBackwardOutput& chunk : chunks) {
    combined.loss_fn_outputs.insert(combined.loss_fn_outputs.end(), chunk.loss_fn_outputs.begin(),
                                    chunk.loss_fn_outputs.end());
  }
  return combined;
}

}  // namespace ballast
