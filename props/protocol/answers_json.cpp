#include "props/protocol/answers_json.h"

#include <array>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "props/protocol/node.h"
#include "props/protocol/words.h"

namespace ballast::props {

namespace {

// ---- Writing

Json number_list(const std::vector<double>& values) {
  Json out = Json::array();
  for (const double value : values) out.push_back(number_json(value));
  return out;
}

Json number_table(const std::vector<std::vector<double>>& rows) {
  Json out = Json::array();
  for (const auto& row : rows) out.push_back(number_list(row));
  return out;
}

Json layer_json(const LayerSnapshot& layer) {
  Json biases = Json::array();
  for (const auto& bias : layer.biases) biases.push_back(bias ? number_json(*bias) : Json(nullptr));
  Json out;
  out["expert_load_counts"] = layer.expert_load_counts;
  out["tokens"] = layer.tokens;
  out["max_load_over_mean"] =
      layer.max_load_over_mean ? number_json(*layer.max_load_over_mean) : Json(nullptr);
  out["zero_load_experts"] =
      layer.zero_load_experts ? Json(*layer.zero_load_experts) : Json(nullptr);
  out["biases"] = std::move(biases);
  return out;
}

/// Adds what an answer says beside its id.
struct Fields {
  Json& out;
  void operator()(const Done&) const { out["ok"] = true; }
  void operator()(const Routed& routed) const {
    out["ok"] = true;
    out["indices"] = routed.indices;
    out["weights"] = number_table(routed.weights);
  }
  void operator()(const BiasesAnswer& answer) const {
    out["ok"] = true;
    out["biases"] = number_table(answer.biases);
  }
  void operator()(const Snapshot& snapshot) const {
    out["ok"] = true;
    out["layers"] = Json::object();
    for (const auto& [name, layer] : snapshot.layers) out["layers"][name] = layer_json(layer);
  }
  void operator()(const MetricsAnswer& answer) const {
    out["ok"] = true;
    out["metrics"] = Json::object();
    for (const auto& [key, value] : answer.metrics) out["metrics"][key] = number_json(value);
  }
  void operator()(const Refusal& refusal) const {
    out["ok"] = false;
    out["error"] = Json{{"code", refusal.code}, {"message", refusal.message}};
  }
};

// ---- Reading

Refusal read_error(const Node& node) {
  constexpr std::array codes = {"unsupported", "already_active", "invalid", "internal"};
  const Node code = node.member("code");
  Refusal out{.code = read_text(code), .message = {}};
  if (std::ranges::find(codes, out.code) == codes.end())
    code.refuse(R"("unsupported", "already_active", "invalid" or "internal")");
  if (node.has("message")) out.message = read_text(node.member("message"));
  return out;
}

/// What every answer has: the id of its request, and ok. The refusal, if it is one.
std::optional<Refusal> read_frame(std::int64_t id, const Node& answer) {
  const Node given = answer.member("id");
  if (read_integer(given) != id) given.refuse(std::to_string(id) + ", the id of the request");
  if (read_boolean(answer.member("ok"))) return std::nullopt;
  return read_error(answer.member("error"));
}

std::map<std::string, double> read_metrics(const Node& node) {
  require_object(node);
  std::map<std::string, double> out;
  for (const auto& [key, value] : node.value().items()) out[key] = read_number(node.member(key));
  return out;
}

template <class Read>
auto read_optional(const Node& node, Read read) {
  using Value = decltype(read(node));
  return node.is_null() ? std::optional<Value>() : std::optional<Value>(read(node));
}

LayerSnapshot read_layer(const Node& node) {
  LayerSnapshot out;
  out.expert_load_counts = read_list(node.member("expert_load_counts"), read_integer);
  out.tokens = read_integer(node.member("tokens"));
  out.max_load_over_mean = read_optional(node.member("max_load_over_mean"), read_number);
  out.zero_load_experts = read_optional(node.member("zero_load_experts"), read_integer);
  out.biases = read_list(node.member("biases"),
                         [](const Node& bias) { return read_optional(bias, read_number); });
  return out;
}

Snapshot read_snapshot(const Node& node) {
  require_object(node);
  Snapshot out;
  for (const auto& [name, value] : node.value().items())
    out.layers[name] = read_layer(node.member(name));
  return out;
}

/// Reads the answer that a request calls for.
struct AnswerTo {
  const Node& node;
  Answer operator()(const Forward&) const {
    return Routed{.indices = read_table(node.member("indices"), read_integer),
                  .weights = read_table(node.member("weights"), read_number)};
  }
  Answer operator()(const Step&) const { return biases(); }
  Answer operator()(const GetBiases&) const { return biases(); }
  Answer operator()(const SetBiases&) const { return Done{}; }
  Answer operator()(const Collector& collector) const {
    if (collector.action != CollectorAction::snapshot) return Done{};
    return read_snapshot(node.member("layers"));
  }
  Answer operator()(const MetricsOf&) const { return metrics(); }
  Answer operator()(const Combine&) const { return metrics(); }
  Answer operator()(const Save&) const {
    node.member("state");
    return Done{};
  }
  Answer operator()(const Load&) const { return Done{}; }

  Answer biases() const { return BiasesAnswer{read_table(node.member("biases"), read_number)}; }
  Answer metrics() const { return MetricsAnswer{read_metrics(node.member("metrics"))}; }
};

}  // namespace

Json answer_json(std::int64_t id, const Answer& answer) {
  Json out;
  out["id"] = id;
  std::visit(Fields{out}, answer);
  return out;
}

Hello read_hello(std::int64_t id, const Json& json) {
  const Node node(json);
  if (const auto refusal = read_frame(id, node))
    throw ProtocolError("/ok: is false, should be true: hello is never refused (" + refusal->message + ")");
  Hello out;
  out.name = read_text(node.member("name"));
  for (const std::string& name : read_list(node.member("supports"), read_text)) {
    if (is_capability(name)) out.supports.insert(value_of<Capability>(name));
  }
  if (!node.has("on_overflow")) return out;
  const Node policy = node.member("on_overflow");
  const std::string given = read_text(policy);
  if (given != "keep" && given != "discard") policy.refuse(R"("keep" or "discard")");
  out.on_overflow = value_of<OnOverflow>(given);
  return out;
}

Answer read_done(std::int64_t id, const Json& json) {
  if (auto refusal = read_frame(id, Node(json))) return *refusal;
  return Done{};
}

Answer read_answer(std::int64_t id, const Request& request, const Json& json) {
  const Node node(json);
  if (auto refusal = read_frame(id, node)) return *refusal;
  return std::visit(AnswerTo{node}, request);
}

}  // namespace ballast::props
