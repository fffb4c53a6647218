#include "props/protocol/requests_json.h"

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "props/protocol/node.h"
#include "props/protocol/words.h"

namespace ballast::props {

namespace {

// ---- Writing

template <class Row>
Json float_list(const Row& values) {
  Json out = Json::array();
  for (const float value : values) out.push_back(float_json(value));
  return out;
}

Json biases_json(const Biases& biases) {
  Json out = Json::array();
  for (const auto& layer : biases) out.push_back(float_list(layer));
  return out;
}

Json logits_json(const Matrix<float>& logits) {
  Json out = Json::array();
  for (std::size_t i = 0; i < logits.rows(); ++i) out.push_back(float_list(logits.row(i)));
  return out;
}

Json mask_json(const std::vector<std::uint8_t>& mask) {
  if (mask.empty()) return nullptr;
  Json out = Json::array();
  for (const std::uint8_t valid : mask) out.push_back(valid != 0);
  return out;
}

Json model_json(const ModelSpec& model) {
  Json out;
  out["layers"] = model.layers;
  out["routed_experts"] = model.routed_experts;
  out["top_k"] = model.top_k;
  out["score"] = word(model.score);
  out["renormalize"] = model.renormalize;
  out["routed_scale"] = number_json(model.routed_scale);
  out["groups"] = nullptr;
  if (model.groups) {
    out["groups"] = Json{{"n_group", model.groups->n_group}, {"topk_group", model.groups->topk_group}};
  }
  return out;
}

Json balancer_json(const BalancerSpec& balancer) {
  Json out;
  out["kind"] = word(balancer.kind);
  out["estimator"] = word(balancer.estimator);
  out["bins"] = balancer.bins;
  out["rate"] = number_json(balancer.rate);
  out["update"] = word(balancer.update);
  return out;
}

Json chunks_json(const std::vector<Chunk>& chunks) {
  Json out = Json::array();
  for (const Chunk& chunk : chunks) {
    Json metrics = Json::object();
    for (const auto& [key, value] : chunk.metrics) metrics[key] = number_json(value);
    out.push_back(Json{{"data", chunk.data}, {"metrics", std::move(metrics)}});
  }
  return out;
}

/// Adds what a request says beside its id and op.
struct Fields {
  Json& out;
  void operator()(const Forward& forward) const {
    out["layer"] = forward.layer;
    out["rank"] = forward.rank;
    out["mode"] = word(forward.mode);
    out["logits"] = logits_json(forward.logits);
    out["mask"] = mask_json(forward.mask);
    // A matrix without rows does not say how many experts it has; a reader of the file may want to know.
    if (forward.logits.rows() == 0) out["experts"] = forward.logits.cols();
  }
  void operator()(const Step& step) const { out["applied"] = step.applied; }
  void operator()(const GetBiases&) const {}
  void operator()(const SetBiases& set) const { out["biases"] = biases_json(set.biases); }
  void operator()(const Collector& collector) const {
    out["action"] = word(collector.action);
    if (collector.action == CollectorAction::enter) out["enabled"] = collector.enabled;
  }
  void operator()(const MetricsOf& metrics) const { out["counts"] = metrics.counts; }
  void operator()(const Combine& combine) const { out["chunks"] = chunks_json(combine.chunks); }
  void operator()(const Save&) const {}
  void operator()(const Load& load) const { out["slot"] = load.slot; }
};

// ---- Reading

template <class Value>
Value read_word(const Node& node) {
  try {
    return value_of<Value>(read_text(node));
  } catch (const std::invalid_argument& error) {
    node.refuse(error.what());
  }
}

std::optional<Groups> read_groups(const Node& node) {
  if (node.is_null()) return std::nullopt;
  return Groups{.n_group = read_size(node.member("n_group")),
                .topk_group = read_size(node.member("topk_group"))};
}

ModelSpec read_model(const Node& node) {
  return {.layers = read_size(node.member("layers")),
          .routed_experts = read_size(node.member("routed_experts")),
          .top_k = read_size(node.member("top_k")),
          .score = read_word<ScoreFunction>(node.member("score")),
          .renormalize = read_boolean(node.member("renormalize")),
          .routed_scale = read_number(node.member("routed_scale")),
          .groups = read_groups(node.member("groups"))};
}

BalancerSpec read_balancer(const Node& node) {
  return {.kind = read_word<BalancerKind>(node.member("kind")),
          .estimator = read_word<Estimator>(node.member("estimator")),
          .bins = read_size(node.member("bins")),
          .rate = read_number(node.member("rate")),
          .update = read_word<Update>(node.member("update"))};
}

Matrix<float> read_logits(const Node& request) {
  const Node node = request.member("logits");
  const auto rows = read_table(node, read_float);
  std::size_t experts = rows.empty() ? 0 : rows.front().size();
  if (rows.empty() && request.has("experts")) experts = read_size(request.member("experts"));
  Matrix<float> out(rows.size(), experts);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].size() != experts)
      node.item(i).refuse("a row of " + std::to_string(experts) + " logits, as the first one");
    for (std::size_t j = 0; j < experts; ++j) out(i, j) = rows[i][j];
  }
  return out;
}

std::vector<std::uint8_t> read_mask(const Node& node) {
  if (node.is_null()) return {};
  return read_list(node, [](const Node& valid) { return static_cast<std::uint8_t>(read_boolean(valid)); });
}

Chunk read_chunk(const Node& node) {
  Chunk out;
  out.data = read_integer(node.member("data"));
  const Node metrics = node.member("metrics");
  require_object(metrics);
  for (const auto& [key, value] : metrics.value().items())
    out.metrics[key] = read_number(metrics.member(key));
  return out;
}

Collector read_collector(const Node& node) {
  Collector out{.action = read_word<CollectorAction>(node.member("action"))};
  if (node.has("enabled")) out.enabled = read_boolean(node.member("enabled"));
  return out;
}

Forward read_forward(const Node& node) {
  return {.layer = read_size(node.member("layer")),
          .rank = read_size(node.member("rank")),
          .mode = read_word<Mode>(node.member("mode")),
          .logits = read_logits(node),
          .mask = read_mask(node.member("mask"))};
}

Request read_request(const Node& node) {
  const Node op = node.member("op");
  const std::string word = read_text(op);
  if (word == "forward") return read_forward(node);
  if (word == "step") return Step{.applied = read_boolean(node.member("applied"))};
  if (word == "biases") return GetBiases{};
  if (word == "set_biases") return SetBiases{read_table(node.member("biases"), read_float)};
  if (word == "collector") return read_collector(node);
  if (word == "metrics") return MetricsOf{read_table(node.member("counts"), read_integer)};
  if (word == "combine") return Combine{read_list(node.member("chunks"), read_chunk)};
  if (word == "save") return Save{};
  if (word == "load") return Load{.slot = read_size(node.member("slot"))};
  op.refuse("an op of the protocol that can come after open");
}

Open read_open(const Node& node) {
  const Node op = node.member("op");
  if (read_text(op) != "open") op.refuse("\"open\", the first request of a case");
  Open out{.model = read_model(node.member("model")),
           .balancer = read_balancer(node.member("balancer")),
           .ranks = read_size(node.member("ranks")),
           .biases = std::nullopt};
  const Node biases = node.member("biases");
  if (!biases.is_null()) out.biases = read_table(biases, read_float);
  return out;
}

std::uint64_t read_salt(const Node& node) {
  const std::string digits = read_text(node);
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto result = std::from_chars(digits.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) node.refuse("a string of digits, below 2^64");
  return value;
}

}  // namespace

Json request_json(std::int64_t id, const Open& open) {
  Json out;
  out["id"] = id;
  out["op"] = "open";
  out["model"] = model_json(open.model);
  out["balancer"] = balancer_json(open.balancer);
  out["ranks"] = open.ranks;
  out["biases"] = open.biases ? biases_json(*open.biases) : Json(nullptr);
  return out;
}

Json request_json(std::int64_t id, const Request& request) {
  Json out;
  out["id"] = id;
  out["op"] = word(request);
  std::visit(Fields{out}, request);
  return out;
}

Json case_json(const Case& input) {
  Json requests = Json::array();
  requests.push_back(request_json(1, input.open));
  std::int64_t id = 1;
  for (const Request& request : input.history) requests.push_back(request_json(++id, request));
  Json out;
  out["salt"] = std::to_string(input.salt);
  out["requests"] = std::move(requests);
  return out;
}

Open read_open(const Json& json) {
  return read_open(Node(json));
}

Request read_request(const Json& json) {
  return read_request(Node(json));
}

Case read_case(const Json& json) {
  const Node node(json);
  Case out;
  out.salt = read_salt(node.member("salt"));
  const Node requests = node.member("requests");
  require_array(requests);
  if (requests.value().empty()) requests.refuse("a list that begins with open");
  out.open = read_open(requests.item(0));
  for (std::size_t i = 1; i < requests.value().size(); ++i)
    out.history.push_back(read_request(requests.item(i)));
  return out;
}

}  // namespace ballast::props
