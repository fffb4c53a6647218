#include <memory>
#include <span>

#include "core/assignment/capacity.h"
#include "core/assignment/expert_choice.h"
#include "core/assignment/optimal_assignment.h"
#include "core/assignment/sinkhorn.h"
#include "core/metrics/combine.h"
#include "core/metrics/load_metrics.h"
#include "core/model/router.h"
#include "core/model/router_losses.h"
#include "sim/route/batch_steps.h"
#include "sim/signature/inputs.h"
#include "sim/signature/stage.h"
#include "sim/trainer/make_balancer.h"

namespace ballast::sim {
namespace {

constexpr std::size_t tokens = 96, experts = 24, top_k = 3, hidden = 40;

RouterSettings router_settings(ScoreFunction score = ScoreFunction::sigmoid) {
  return {.hidden = hidden, .routed_experts = experts, .top_k = top_k, .score = score};
}

Matrix<float> logits_of(std::string_view stage, std::uint64_t index = 0) {
  return normal_matrix<float>(stage_stream(stage).child(index), tokens, experts);
}

/// Every eighth token is padding.
std::vector<std::uint8_t> valid_tokens() {
  std::vector<std::uint8_t> valid(tokens, 1);
  for (std::size_t t = 0; t < tokens; t += 8) valid[t] = 0;
  return valid;
}

template <class T>
void add(Digest& digest, const Matrix<T>& matrix) {
  digest.add(matrix.values());
}
template <class T>
void add(Digest& digest, const std::vector<T>& values) {
  digest.add(std::span<const T>(values));
}

void add(Digest& digest, const Routing<float>& routing) {
  add(digest, routing.scores);
  add(digest, routing.selection.indices);
  add(digest, routing.selection.cutoffs);
  add(digest, routing.weights);
  add(digest, routing.weight_sums);
}

/// A router with a gate of its own, its decisions on some tokens, and their way back.
void add_router(Digest& digest, const RouterSettings& settings, const Executor& executor) {
  const Stream stream = stage_stream("router");
  Router<float> router(settings);
  router.gate.weight.value = normal_matrix<float>(stream.child("gate"), experts, hidden);
  const auto x = normal_matrix<float>(stream.child("x"), tokens, hidden);
  const auto routing = router.forward(x, small_biases(stream.child("biases"), experts), executor);
  add(digest, routing);
  const auto dp = normal_matrix<float>(stream.child("dp"), tokens, routing.weights.cols());
  const auto dz = router.logit_gradient(routing, dp);
  Matrix<float> dx(tokens, hidden);
  router.backward(x, dz, dx, executor);
  add(digest, dz);
  add(digest, dx);
  add(digest, router.gate.weight.gradient);
}

void add_routers(Digest& digest, const Executor& executor) {
  for (const ScoreFunction score :
       {ScoreFunction::sigmoid, ScoreFunction::softmax, ScoreFunction::logit}) {
    add_router(digest, router_settings(score), executor);
  }
  auto groups = router_settings();
  groups.groups = {.count = 6, .chosen = 2};
  add_router(digest, groups, executor);
}

void add_assignments(Digest& digest, const Executor&) {
  const Matrix<float> logits = logits_of("assignments");
  const auto valid = valid_tokens();
  const auto biases = small_biases(stage_stream("assignments"), experts);
  add(digest, sinkhorn_plan<float>(logits, valid, {}).plan);
  add(digest, choose_by_expert<float>(logits, biases, valid, top_k));
  add(digest, choose_above_threshold<float>(logits, biases));
  add(digest, assign_optimally<float>(logits, valid, top_k));
  const auto routing = Router<float>(router_settings()).route(logits, biases);
  for (const DropPolicy policy : {DropPolicy::probs, DropPolicy::position}) {
    add(digest, drop_beyond<float>(expert_capacity(1.0, tokens, top_k, experts), policy,
                                   routing.selection.indices.view(), routing.weights.view(), valid,
                                   experts));
  }
}

void add_router_losses(Digest& digest, const Executor&) {
  const auto valid = valid_tokens();
  const Router<float> router(router_settings(), /*keep_logits=*/true);
  for (const AuxFormula formula : {AuxFormula::megatron, AuxFormula::without_k,
                                   AuxFormula::switch_top_1, AuxFormula::gshard}) {
    for (const AuxScope scope : {AuxScope::micro_batch, AuxScope::sequence, AuxScope::global}) {
      RouterLosses<float> losses({.aux = formula, .aux_scope = scope, .z_coefficient = 0.001},
                                 router.settings());
      for (std::uint64_t forward = 0; forward < 2; ++forward) {
        const auto routing =
            router.route(logits_of("losses", forward), std::vector<float>(experts));
        losses.forward(routing, valid, tokens / 4, /*recompute=*/false);
        Matrix<float> gradient(tokens, experts);
        losses.add_gradient(routing, 1.0f, gradient);
        add(digest, gradient);
        const RouterLossValues values = losses.values(routing);
        digest.add(values.aux);
        digest.add(values.z);
      }
    }
  }
}

/// Three steps of two forwards on two ranks each, under the biases as they move.
void add_balancer(Digest& digest, const BalancerSettings& settings) {
  const Router<float> router(router_settings());
  const auto balancer = make_balancer(router.settings(), settings);
  const auto valid = valid_tokens();
  for (std::uint64_t step = 0; step < 3; ++step) {
    for (std::uint64_t rank = 0; rank < 2; ++rank) {
      const auto routing =
          router.route(logits_of("balancers", 2 * step + rank), balancer->biases());
      balancer->observe({.scores = routing.scores,
                         .cutoffs = routing.selection.cutoffs,
                         .indices = routing.selection.indices.view(),
                         .valid = valid,
                         .rank = rank,
                         .sequence_length = tokens / 4});
    }
    balancer->end_step(true);
    digest.add(balancer->biases());
  }
}

Stage balancer_stage(const std::string& name, const BalancerSettings& settings) {
  return {"balancers/" + name,
          [settings](Digest& digest, const Executor&) { add_balancer(digest, settings); }};
}

Stage quantile_stage(const std::string& name, QuantileEstimatorKind estimator) {
  BalancerSettings settings;
  settings.quantile.estimator = estimator;
  return balancer_stage(name, settings);
}

Stage kind_stage(const std::string& name, BalancerKind kind) {
  BalancerSettings settings;
  settings.kind = kind;
  settings.sign.step = SignStep::rms;
  return balancer_stage(name, settings);
}

std::vector<Stage> balancer_stages() {
  return {quantile_stage("exact", QuantileEstimatorKind::exact),
          quantile_stage("histogram", QuantileEstimatorKind::histogram),
          quantile_stage("microbatch_mean", QuantileEstimatorKind::microbatch_mean),
          quantile_stage("chunk_mean", QuantileEstimatorKind::chunk_mean),
          quantile_stage("sequence_mean", QuantileEstimatorKind::sequence_mean),
          kind_stage("sign", BalancerKind::sign),
          kind_stage("smebu", BalancerKind::smebu),
          kind_stage("threshold", BalancerKind::threshold)};
}

void add_load_metrics(Digest& digest, const std::vector<std::int64_t>& loads) {
  const auto metrics = load_metrics(loads);
  if (!metrics) return;
  for (const double figure :
       {metrics->frac_with_tokens, metrics->frac_oversubscribed, metrics->max_violation,
        metrics->min_violation, metrics->load_cv, metrics->entropy, metrics->entropy_normalised,
        metrics->kl_to_uniform, metrics->gini, metrics->max_over_mean, metrics->balancedness,
        metrics->max_over_min}) {
    digest.add(figure);
  }
}

void add_metrics(Digest& digest, const Executor&) {
  Stream stream = stage_stream("metrics");
  std::vector<ForwardBackwardOutput> chunks;
  for (std::size_t chunk = 0; chunk < 3; ++chunk) {
    std::vector<std::vector<std::int64_t>> layers(4);
    for (auto& loads : layers) {
      for (std::size_t j = 0; j < experts; ++j)
        loads.push_back(static_cast<std::int64_t>(100 * log_normal(stream, 2.0)));
      add_load_metrics(digest, loads);
    }
    chunks.push_back({.loss_fn_output_type = "",
                      .loss_fn_outputs = std::vector<LossFnOutput>(chunk + 1),
                      .metrics = moe_metrics(layers)});
  }
  for (const auto& [key, value] : combine(chunks).metrics) digest.add(value);
}

class DigestSink final : public RoutingSink {
 public:
  explicit DigestSink(Digest& digest) : digest_(digest) {}
  void take(const RoutingRows& rows) override {
    // Value by value: how many come at once is no result.
    for (const std::int32_t index : rows.indices.values()) digest_.add(index);
    for (const float weight : rows.weights.values()) weights_.add(weight);
    for (const float cutoff : rows.cutoffs) cutoffs_.add(cutoff);
  }
  std::string rest() const { return weights_.hex() + cutoffs_.hex(); }

 private:
  Digest& digest_;
  Digest weights_, cutoffs_;
};

/// Two steps of a batch that is more than a balancer keeps whole.
void add_batch(Digest& digest, const BalancerChoice& choice, const Executor& executor) {
  constexpr std::size_t batch_tokens = 9000, batch_experts = 8;
  const RouterSettings router = {.routed_experts = batch_experts, .top_k = 2};
  const auto values = normal_matrix<float>(stage_stream("batch"), batch_tokens, batch_experts);
  const auto logits = logits_in_memory(values.view());
  BatchBalancer balancer(choice, router, small_biases(stage_stream("batch"), batch_experts));
  DigestSink sink(digest);
  const BatchSteps steps = iterate(router, {*logits, {}}, 2, balancer, &sink, executor);
  const std::string rest = sink.rest();
  digest.add(std::span<const char>(rest));
  add(digest, steps.after.loads);
  add(digest, steps.biases);
}

void add_batches(Digest& digest, const Executor& executor) {
  using Kind = BalancerChoice::Kind;
  for (const Kind kind : {Kind::none, Kind::exact, Kind::histogram, Kind::sign}) {
    add_batch(digest, {.kind = kind}, executor);
  }
}

}  // namespace

std::vector<Stage> routing_stages() {
  std::vector<Stage> stages = {{"routers", add_routers},
                               {"assignment rules", add_assignments},
                               {"router losses", add_router_losses}};
  for (Stage& stage : balancer_stages()) stages.push_back(std::move(stage));
  stages.push_back({"metrics", add_metrics});
  stages.push_back({"batches", add_batches});
  return stages;
}

}  // namespace ballast::sim
