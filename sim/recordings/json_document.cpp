#include "sim/recordings/json_document.h"

#include <nlohmann/json.hpp>
#include <numeric>

#include "sim/input_error.h"
#include "sim/recordings/row_tally.h"

namespace ballast::sim {
namespace {

using nlohmann::json;

[[noreturn]] void fail(const std::string& path, const std::string& pointer, const std::string& why,
                       const std::string& right) {
  throw InputError({.what = "cannot read the recording",
                    .where = path + "#" + pointer,
                    .why = why,
                    .right = right});
}

std::string pointer(const char* field, std::size_t i) {
  return std::string("/") + field + "/" + std::to_string(i);
}

const json& array_at(const json& value, const std::string& path, const std::string& where) {
  if (!value.is_array())
    fail(path, where, std::string("this is a ") + value.type_name(), "give an array");
  return value;
}

/// The number under a key, when it is there and at all usable as one.
std::optional<std::size_t> number(const json& document, const char* key, const std::string& path) {
  const auto found = document.find(key);
  if (found == document.end()) return std::nullopt;
  const bool fits = found->is_number_unsigned() && *found >= 1u && *found <= max_experts;
  if (!fits) {
    fail(path, std::string("/") + key, "this is no number of experts",
         "give an integer from 1 to " + std::to_string(max_experts));
  }
  return found->get<std::size_t>();
}

/// Counts the selections of one token, one row a layer.
void add_token(const json& layers, std::size_t token, const std::string& path, RowTally& tally) {
  static const RowSchema schema{
      .layer = "", .experts = "experts", .token = "", .weights = "", .sequence = {}};
  const std::string where = pointer("selections", token);
  for (std::size_t layer = 0; layer < array_at(layers, path, where).size(); ++layer) {
    try {
      RoutingRow row = parse_row(json{{"experts", layers[layer]}}, schema);
      row.layer = static_cast<std::int64_t>(layer);
      row.token = static_cast<std::int64_t>(token);
      tally.add(row, 0);
    } catch (const RowFault& fault) {
      tally.log().add(fault.kind, 0, where + "/" + std::to_string(layer) + ": " + fault.what());
    }
  }
}

RecordedRouting read_selections(const json& document, const std::string& path,
                                const ReadSettings& settings) {
  const json& tokens = array_at(document["selections"], path, "/selections");
  const auto experts =
      settings.experts ? settings.experts : number(document, "expertsPerLayer", path);
  const auto top_k = settings.top_k ? settings.top_k : number(document, "topK", path);
  RowTally tally({.experts = experts,
                  .top_k = top_k,
                  .skip_warm_up = settings.skip_warm_up,
                  .on_row = settings.on_row},
                 path);
  for (std::size_t token = 0; token < tokens.size(); ++token)
    add_token(tokens[token], token, path, tally);
  RecordedRouting routing = tally.finish();
  routing.format = "selections by token and layer";
  return routing;
}

std::vector<std::int64_t> read_loads(const json& values, const std::string& path,
                                     const std::string& where) {
  std::vector<std::int64_t> counts;
  std::int64_t total = 0;
  for (const json& value : array_at(values, path, where)) {
    const bool fits = value.is_number_unsigned() && value <= max_assignments;
    if (fits) total += value.get<std::int64_t>();
    if (!fits || total > max_assignments) {
      fail(path, where + "/" + std::to_string(counts.size()),
           "this is no load, or the loads are too large",
           "give integers from 0, with a sum up to 2^53");
    }
    counts.push_back(value.get<std::int64_t>());
  }
  return counts;
}

RecordedRouting read_load_matrix(const json& document, const std::string& path,
                                 const ReadSettings& settings) {
  const json& layers = array_at(document["load"], path, "/load");
  RecordedRouting routing;
  routing.format = "loads by layer and expert";
  routing.top_k = settings.top_k;
  routing.experts =
      settings.experts ? *settings.experts : number(document, "num_experts", path).value_or(0);
  if (layers.size() > max_layers)
    fail(path, "/load", "too many layers", "give up to " + std::to_string(max_layers));
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string where = pointer("load", i);
    RecordedLayer layer{static_cast<std::int64_t>(i), std::nullopt, 0,
                        read_loads(layers[i], path, where)};
    if (routing.experts == 0) routing.experts = layer.counts.size();
    if (layer.counts.size() != routing.experts) {
      fail(path, where, "it has " + std::to_string(layer.counts.size()) + " loads",
           "give " + std::to_string(routing.experts) + ", one an expert");
    }
    layer.assignments = std::accumulate(layer.counts.begin(), layer.counts.end(), std::int64_t{0});
    routing.layers.push_back(std::move(layer));
  }
  return routing;
}

}  // namespace

bool is_recording_document(const json& object) {
  return object.contains("selections") || object.contains("load");
}

RecordedRouting read_json_document(const json& document, const std::string& path,
                                   const ReadSettings& settings) {
  if (document.contains("selections")) return read_selections(document, path, settings);
  return read_load_matrix(document, path, settings);
}

}  // namespace ballast::sim
