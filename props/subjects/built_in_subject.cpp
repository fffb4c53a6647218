#include "props/subjects/built_in_subject.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "core/balancers/no_balancer.h"
#include "core/balancers/quantile_balancer.h"
#include "core/balancers/sign_balancer.h"
#include "core/metrics/combine.h"
#include "core/metrics/moe_metrics.h"
#include "core/model/selection.h"

namespace ballast::props {

namespace {

Refusal invalid(std::string message) {
  return {"invalid", std::move(message)};
}
Refusal unsupported(std::string message) {
  return {"unsupported", std::move(message)};
}

bool has_shape(const Biases& biases, std::size_t layers, std::size_t experts) {
  return biases.size() == layers &&
         std::ranges::all_of(biases, [&](const auto& row) { return row.size() == experts; });
}

UpdateCadence cadence(Update update) {
  return update == Update::step ? UpdateCadence::step : UpdateCadence::forward;
}
SkippedStep policy(OnOverflow on_overflow) {
  return on_overflow == OnOverflow::keep ? SkippedStep::keep : SkippedStep::discard;
}

/// DeepSeek-V3's rule: a group is judged by the sum of its two best s + b.
ExpertGroups expert_groups(const ModelSpec& model) {
  if (!model.groups) return {};
  return {.count = model.groups->n_group,
          .chosen = model.groups->topk_group,
          .score = GroupScore::top_2};
}

std::optional<Refusal> refusal_of_groups(const Open& open) {
  const ExpertGroups groups = expert_groups(open.model);
  if (const auto wrong = problem(groups, open.model.routed_experts, open.model.top_k)) {
    return unsupported("groups: " + *wrong);
  }
  if (groups.limit() && open.balancer.kind == BalancerKind::quantile) {
    return unsupported("quantile balancing with groups: there is no cutoff");
  }
  return std::nullopt;
}

/// Why a case cannot begin, if it cannot.
std::optional<Refusal> refusal(const Open& open) {
  const ModelSpec& model = open.model;
  if (model.layers < 1 || model.routed_experts < 1 || open.ranks < 1) {
    return invalid("open: layers, routed_experts and ranks are at least 1");
  }
  if (model.top_k < 1 || model.top_k > model.routed_experts) {
    return invalid("open: top_k is " + std::to_string(model.top_k) + ", not within 1.." +
                   std::to_string(model.routed_experts) + " (the routed experts)");
  }
  if (open.balancer.kind == BalancerKind::quantile && model.top_k == model.routed_experts) {
    return unsupported("quantile balancing with top_k = routed_experts: there is no cutoff");
  }
  if (auto refused = refusal_of_groups(open)) return refused;
  if (open.biases && !has_shape(*open.biases, model.layers, model.routed_experts)) {
    return invalid("open: biases are not of shape [layers, routed_experts]");
  }
  return std::nullopt;
}

/// A node that has children and parameters of its own kind, but no router.
struct Container final : Module {
  using Module::add_module;
};

/// Forwards the slot of the layer it wraps, as a compiled or checkpointed module does.
struct Wrapper final : Module {
  explicit Wrapper(MoELayer& wrapped) : moe(wrapped) { add_module("moe", wrapped); }
  ExpertLoadSlot* expert_load_slot() override { return moe.expert_load_slot(); }
  MoELayer& moe;
};

/// Rows from which the balancer learns: not padding, and with required biases that are numbers.
std::vector<std::uint8_t> observable_rows(const Forward& forward, const Routing<float>& routing) {
  std::vector<std::uint8_t> valid = routing.finite;
  const auto& cutoffs = routing.selection.cutoffs;
  for (std::size_t t = 0; t < valid.size(); ++t) {
    if (!forward.mask.empty() && forward.mask[t] == 0) valid[t] = 0;
    if (valid[t] == 0 || cutoffs.empty()) continue;
    const auto [low, high] = std::ranges::minmax(routing.scores.row(t));
    valid[t] = std::isfinite(cutoffs[t] - low) && std::isfinite(cutoffs[t] - high);
  }
  return valid;
}

Routed as_answer(const Routing<float>& routing) {
  Routed routed;
  const auto& indices = routing.selection.indices;
  routed.indices.reserve(indices.rows());
  routed.weights.reserve(indices.rows());
  for (std::size_t t = 0; t < indices.rows(); ++t) {
    const auto chosen = indices.row(t);
    const auto weights = routing.weights.row(t);
    routed.indices.emplace_back(chosen.begin(), chosen.end());
    routed.weights.emplace_back(weights.begin(), weights.end());
  }
  return routed;
}

LayerSnapshot as_answer(const LayerRecord& record) {
  return {.expert_load_counts = record.expert_load_counts,
          .tokens = record.tokens,
          .max_load_over_mean = record.max_load_over_mean,
          .zero_load_experts = record.zero_load_experts,
          .biases = {record.biases.begin(), record.biases.end()}};
}

std::string prefix_of(std::size_t layer) {
  return "layers." + std::to_string(layer) + ".";
}

}  // namespace

MoELayer::MoELayer(std::size_t experts, std::size_t top_k, std::unique_ptr<Balancer> with)
    : balancer(std::move(with)), experts_(experts), top_k_(top_k) {}

/// The tree: an embedding without a router, then the layers, each in a wrapper that shows the same
/// slot.
struct BuiltInSubject::Model final : Module {
  explicit Model(const std::vector<std::unique_ptr<MoELayer>>& moe_layers) {
    add_module("embedding", embedding);
    for (std::size_t l = 0; l < moe_layers.size(); ++l) {
      wrappers.push_back(std::make_unique<Wrapper>(*moe_layers[l]));
      stack.add_module(std::to_string(l), *wrappers.back());
    }
    add_module("layers", stack);
  }
  Container embedding;
  Container stack;
  std::vector<std::unique_ptr<Wrapper>> wrappers;
};

BuiltInSubject::BuiltInSubject(std::string name, OnOverflow on_overflow) {
  using enum Capability;
  hello_ = {.name = std::move(name),
            .supports = {route, balance, collect, metrics, combine, state, mask, recompute, ranks,
                         groups},
            .on_overflow = on_overflow};
}

Answer BuiltInSubject::open(const Open& open) {
  if (auto refused = refusal(open)) return *std::move(refused);
  collector_.reset();  // before the layers it holds
  model_.reset();
  layers_.clear();
  saved_.clear();
  open_ = open;
  const ModelSpec& spec = open_.model;
  router_ = std::make_unique<Router<float>>(RouterSettings{.hidden = 1,
                                                           .routed_experts = spec.routed_experts,
                                                           .top_k = spec.top_k,
                                                           .score = spec.score,
                                                           .renormalize = spec.renormalize,
                                                           .routed_scale = spec.routed_scale,
                                                           .groups = expert_groups(spec)});
  try {
    for (std::size_t l = 0; l < spec.layers; ++l) {
      layers_.push_back(
          std::make_unique<MoELayer>(spec.routed_experts, spec.top_k, make_balancer()));
      if (open_.biases) layers_.back()->balancer->set_biases((*open_.biases)[l]);
    }
  } catch (const std::invalid_argument& error) {
    layers_.clear();
    return invalid(error.what());
  }
  model_ = std::make_unique<Model>(layers_);
  return Done{};
}

Answer BuiltInSubject::ask(const Request& request) {
  if (model_ == nullptr) return invalid("nothing is open");
  try {
    return std::visit([this](const auto& r) { return answer(r); }, request);
  } catch (const std::invalid_argument& error) {
    return invalid(error.what());
  } catch (const std::out_of_range& error) {
    return invalid(error.what());
  }
}

QuantileSettings BuiltInSubject::quantile_settings() const {
  const BalancerSpec& spec = open_.balancer;
  return {.estimator = spec.estimator == Estimator::exact ? QuantileEstimatorKind::exact
                                                          : QuantileEstimatorKind::histogram,
          .bins = spec.bins,
          .update = cadence(spec.update),
          .on_skipped_step = policy(hello_.on_overflow)};
}

std::unique_ptr<Balancer> BuiltInSubject::make_balancer() {
  const std::size_t experts = model().routed_experts;
  switch (open_.balancer.kind) {
    case BalancerKind::quantile:
      return std::make_unique<QuantileBalancer>(experts, model().top_k, quantile_settings());
    case BalancerKind::sign:
      return std::make_unique<SignBalancer>(
          experts, SignSettings{.rate = open_.balancer.rate,
                                .loads = {.update = cadence(open_.balancer.update),
                                          .on_skipped_step = policy(hello_.on_overflow)}});
    default:
      return std::make_unique<NoBalancer>(experts);
  }
}

Routing<float> BuiltInSubject::route(const Forward& forward) {
  return router().route(forward.logits, layer(forward.layer).biases());
}

void BuiltInSubject::observe(const Forward& forward, const Routing<float>& routing) {
  if (open_.balancer.kind == BalancerKind::none) return;
  const auto valid = observable_rows(forward, routing);
  layer(forward.layer)
      .balancer->observe({.scores = routing.scores,
                          .cutoffs = routing.selection.cutoffs,
                          .indices = routing.selection.indices,
                          .valid = valid,
                          .rank = forward.rank});
}

void BuiltInSubject::count(const Forward& forward, const Routing<float>& routing,
                           std::vector<std::int64_t>& counters) {
  count_assignments(routing.selection.indices, forward.mask, counters);
}

void BuiltInSubject::end_step(bool applied) {
  for (const auto& moe : layers_) moe->balancer->end_step(applied);
}

Biases BuiltInSubject::biases() {
  Biases all;
  for (const auto& moe : layers_) all.emplace_back(moe->biases().begin(), moe->biases().end());
  return all;
}

void BuiltInSubject::set_biases(const Biases& biases) {
  for (std::size_t l = 0; l < layers_.size(); ++l) layers_[l]->balancer->set_biases(biases[l]);
}

void BuiltInSubject::enter(bool enabled) {
  auto collector = std::make_unique<MoEDiagnostics>(*model_, enabled);
  collector->enter();
  collector_ = std::move(collector);
}

void BuiltInSubject::exit() {
  collector_.reset();
}

Snapshot BuiltInSubject::snapshot() {
  Snapshot snapshot;
  for (const auto& [name, record] : collector_->snapshot().layers) {
    snapshot.layers[name] = as_answer(record);
  }
  return snapshot;
}

std::map<std::string, double> BuiltInSubject::metrics(const Counts& counts) {
  return moe_metrics(counts);
}

std::map<std::string, double> BuiltInSubject::combine(const std::vector<Chunk>& chunks) {
  std::vector<ForwardBackwardOutput> outputs;
  for (const Chunk& chunk : chunks) {
    outputs.push_back(
        {.loss_fn_output_type = {},
         .loss_fn_outputs = std::vector<LossFnOutput>(static_cast<std::size_t>(chunk.data)),
         .metrics = chunk.metrics});
  }
  return ballast::combine(outputs).metrics;
}

StateDict BuiltInSubject::save() {
  StateDict state;
  for (std::size_t l = 0; l < layers_.size(); ++l) layers_[l]->balancer->save(state, prefix_of(l));
  return state;
}

void BuiltInSubject::load(const StateDict& state) {
  for (std::size_t l = 0; l < layers_.size(); ++l) layers_[l]->balancer->load(state, prefix_of(l));
}

Answer BuiltInSubject::answer(const Forward& forward) {
  if (forward.layer >= layers_.size()) {
    return invalid("forward: there is no layer " + std::to_string(forward.layer));
  }
  if (forward.rank >= open_.ranks) {
    return invalid("forward: there is no rank " + std::to_string(forward.rank));
  }
  const std::size_t tokens = forward.logits.rows();
  if (tokens > 0 && forward.logits.cols() != model().routed_experts) {
    return invalid("forward: " + std::to_string(forward.logits.cols()) + " logits a token for " +
                   std::to_string(model().routed_experts) + " routed experts");
  }
  if (!forward.mask.empty() && forward.mask.size() != tokens) {
    return invalid("forward: a mask of " + std::to_string(forward.mask.size()) + " for " +
                   std::to_string(tokens) + " tokens");
  }
  if (forward.logits.cols() != model().routed_experts) {  // of no tokens the width is unknown
    Forward empty = forward;
    empty.logits = Matrix<float>(0, model().routed_experts);
    return answer(empty);
  }
  const auto routing = route(forward);
  // The balancer may refuse the forward, so it comes before the counters.
  if (observes(forward)) observe(forward, routing);
  auto& counters = layer(forward.layer).expert_load_counts();
  if (counters && counts(forward)) count(forward, routing, *counters);
  return as_answer(routing);
}

Answer BuiltInSubject::answer(const Step& step) {
  end_step(step.applied);
  return answer(GetBiases{});
}

Answer BuiltInSubject::answer(const GetBiases&) {
  BiasesAnswer answer;
  for (const auto& row : biases()) answer.biases.emplace_back(row.begin(), row.end());
  return answer;
}

Answer BuiltInSubject::answer(const SetBiases& request) {
  if (!has_shape(request.biases, layers_.size(), model().routed_experts)) {
    return invalid("set_biases: biases are not of shape [layers, routed_experts]");
  }
  set_biases(request.biases);
  return Done{};
}

Answer BuiltInSubject::answer(const Collector& request) {
  if (request.action == CollectorAction::enter) {
    if (collector_) return Refusal{"already_active", "a collector is active; exit it first"};
    enter(request.enabled);
    return Done{};
  }
  if (!collector_) return invalid("no collector is active; enter one first");
  if (request.action == CollectorAction::snapshot) return snapshot();
  exit();
  return Done{};
}

Answer BuiltInSubject::answer(const MetricsOf& request) {
  return MetricsAnswer{metrics(request.counts)};
}

Answer BuiltInSubject::answer(const Combine& request) {
  constexpr std::int64_t data_max = 1 << 16;  // the combiner takes a record for each
  for (const Chunk& chunk : request.chunks) {
    if (chunk.data < 0 || chunk.data > data_max) {
      return invalid("combine: data is " + std::to_string(chunk.data) + ", not within 0.." +
                     std::to_string(data_max));
    }
  }
  return MetricsAnswer{combine(request.chunks)};
}

Answer BuiltInSubject::answer(const Save&) {
  saved_.push_back(save());
  return Done{};
}

Answer BuiltInSubject::answer(const Load& request) {
  if (request.slot >= saved_.size()) {
    return invalid("load: there is no save " + std::to_string(request.slot));
  }
  load(saved_[request.slot]);
  return Done{};
}

}  // namespace ballast::props
