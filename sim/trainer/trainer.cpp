#include "sim/trainer/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/arithmetic/reductions.h"
#include "core/assignment/chosen_experts.h"
#include "core/metrics/moe_metrics.h"
#include "core/model/cross_entropy.h"
#include "sim/trainer/make_balancer.h"

namespace ballast::sim {

namespace {

LanguageModelSettings with_vocabulary(LanguageModelSettings settings, std::size_t vocabulary) {
  settings.vocabulary = vocabulary;
  return settings;
}

Loads empty_loads(std::size_t layers, std::size_t experts) {
  return Loads(layers, std::vector<std::int64_t>(experts, 0));
}

void add_loads(Loads& sum, const Loads& term) {
  for (std::size_t layer = 0; layer < sum.size(); ++layer) {
    for (std::size_t j = 0; j < sum[layer].size(); ++j) sum[layer][j] += term[layer][j];
  }
}

std::string layer_prefix(std::size_t layer) {
  return "balancers." + std::to_string(layer) + ".";
}

std::int64_t valid_tokens(const TokenBatch& batch) {
  return std::ranges::count_if(batch.valid, [](std::uint8_t valid) { return valid != 0; });
}

/// log sum e^logit of every valid token, `[tokens]`.
std::vector<float> log_sums_of(const TokenBatch& batch, MatrixView<const float> logits) {
  std::vector<float> log_sums(logits.rows(), 0.0f);
  for (std::size_t t = 0; t < logits.rows(); ++t) {
    if (batch.valid[t] != 0)
      log_sums[t] = arithmetic::log_sum_exp(std::span<const float>(logits.row(t)));
  }
  return log_sums;
}

/// Log probability of every target, `[tokens]`, 0 at padding.
std::vector<float> logprobs_of(const TokenBatch& batch, MatrixView<const float> logits,
                               const std::vector<float>& log_sums) {
  std::vector<float> logprobs(logits.rows(), 0.0f);
  for (std::size_t t = 0; t < logits.rows(); ++t) {
    if (batch.valid[t] == 0) continue;
    logprobs[t] = logits(t, static_cast<std::size_t>(batch.targets[t])) - log_sums[t];
  }
  return logprobs;
}

/// One running sum in token order, so that it does not depend on where one batch ends and the next
/// begins.
void add_losses(const TokenBatch& batch, const std::vector<float>& logprobs, double& sum) {
  for (std::size_t t = 0; t < logprobs.size(); ++t) {
    if (batch.valid[t] != 0) sum -= static_cast<double>(logprobs[t]);
  }
}

ForwardBackwardOutput make_output(const TokenBatch& batch, const std::vector<float>& logprobs,
                                  const Loads& loads) {
  ForwardBackwardOutput output;
  output.loss_fn_output_type = "CrossEntropyOutput";
  for (std::size_t s = 0; s < batch.sequences; ++s) {
    const auto first = logprobs.begin() + static_cast<std::ptrdiff_t>(s * batch.length);
    std::vector<float> own(first, first + static_cast<std::ptrdiff_t>(batch.length));
    output.loss_fn_outputs.push_back(
        {{"logprobs", TensorData{.data = std::move(own), .shape = {batch.length}}}});
  }
  double loss_sum = 0.0;
  add_losses(batch, logprobs, loss_sum);
  output.metrics = moe_metrics(loads);
  output.metrics["loss:sum"] = loss_sum;
  output.metrics["tokens:sum"] = static_cast<double>(valid_tokens(batch));
  return output;
}

/// Assignments of valid tokens that have no place for want of capacity.
std::int64_t dropped_assignments(const Routing<float>& routing, std::span<const std::uint8_t> valid) {
  if (routing.kept.rows() == 0) return 0;
  const auto chosen = routing.selection.indices.view();
  std::int64_t dropped = 0;
  for (std::size_t t = 0; t < chosen.rows(); ++t) {
    for (std::size_t slot = 0; slot < chosen.cols() && valid[t] != 0; ++slot) {
      dropped += chosen(t, slot) != routing.kept(t, slot);
    }
  }
  return dropped;
}

/// Valid tokens that no routed expert runs for.
std::int64_t unserved_tokens(const Routing<float>& routing, std::span<const std::uint8_t> valid) {
  const auto runs = routing.dispatched().view();
  std::int64_t unserved = 0;
  for (std::size_t t = 0; t < runs.rows(); ++t) {
    unserved +=
        valid[t] != 0 && std::ranges::all_of(runs.row(t), [](auto j) { return j == no_expert; });
  }
  return unserved;
}

/// Whether a token may be left without an expert.
bool may_leave_tokens(const AssignmentSettings& assignment) {
  return assignment.capacity.drop != DropPolicy::none ||
         assignment.rule == AssignmentRule::expert_choice ||
         assignment.rule == AssignmentRule::threshold;
}

}  // namespace

Trainer::Trainer(const Scenario& scenario, std::size_t vocabulary, const Executor& executor)
    : executor_(executor),
      model_(with_vocabulary(model_settings(scenario), vocabulary),
             [&] {
               return with_fault(make_balancer(scenario.model.moe.router, scenario.balancer),
                                 scenario.fault);
             }),
      optimizer_(model_.named_parameters<float>(), scenario.training.optimizer),
      loss_scale_(scenario.training.loss_scale),
      experts_(scenario.model.moe.router.routed_experts),
      fault_(scenario.fault) {
  initialize<float>(model_, Stream(scenario.seed).child("initialization"));
  begin_step();
}

void Trainer::begin_step() {
  pending_ = false;
  loss_sum_ = 0.0;
  tokens_ = 0;
  loads_ = empty_loads(model_.layers(), experts_);
  dropped_ = 0;
  unserved_ = 0;
  loss_values_ = {};
  optimizer_.clear_gradients();
}

ForwardBackwardOutput Trainer::forward_backward(const TokenBatch& batch, std::size_t rank) {
  pending_ = true;
  const auto& logits =
      model_.forward(batch.inputs, {.executor = executor_,
                                    .valid = batch.valid,
                                    .rank = rank,
                                    .sequence_length = batch.length,
                                    .loss_scale = loss_scale_.value()});
  const auto log_sums = log_sums_of(batch, logits);
  const auto logprobs = logprobs_of(batch, logits, log_sums);
  const Loads loads = loads_of(batch);
  show_routing();
  add_losses(batch, logprobs, loss_sum_);
  add_loads(loads_, loads);
  add_router_figures(batch);
  tokens_ += valid_tokens(batch);
  model_.backward(logit_gradient(batch, logits, log_sums), executor_);
  return make_output(batch, logprobs, loads);
}

Evaluated Trainer::evaluate(const TokenBatch& batch) {
  if (fault_ != BalancerFault::evaluation_leak) model_.eval();
  const auto& logits = model_.forward(batch.inputs, {.executor = executor_, .valid = batch.valid});
  model_.train();
  const auto logprobs = logprobs_of(batch, logits, log_sums_of(batch, logits));
  const Loads loads = loads_of(batch);
  double loss_sum = 0.0;
  add_losses(batch, logprobs, loss_sum);
  return {.output = make_output(batch, logprobs, loads),
          .loss = loss_sum / static_cast<double>(valid_tokens(batch)),
          .loads = loads};
}

const Matrix<float>& Trainer::logit_gradient(const TokenBatch& batch, MatrixView<const float> logits,
                                             const std::vector<float>& log_sums) {
  dlogits_.reshape(logits.rows(), logits.cols());
  const auto scale = static_cast<float>(loss_scale_.value());
  executor_.for_each(batch.sequences, [&](std::size_t s) {
    for (std::size_t t = s * batch.length; t < (s + 1) * batch.length; ++t) {
      const auto out = dlogits_.row(t);
      if (batch.valid[t] != 0) {
        cross_entropy_gradient(logits.row(t), log_sums[t], static_cast<std::size_t>(batch.targets[t]),
                               scale, out);
      } else {
        std::ranges::fill(out, 0.0f);
      }
    }
  });
  return dlogits_;
}

Loads Trainer::loads_of(const TokenBatch& batch) {
  Loads loads = empty_loads(model_.layers(), experts_);
  for (std::size_t layer = 0; layer < loads.size(); ++layer) {
    count_assignments(model_.moe(layer).routing().selection.indices, batch.valid, loads[layer]);
  }
  return loads;
}

void Trainer::show_routing() {
  if (observer_ == nullptr) return;
  for (std::size_t layer = 0; layer < model_.layers(); ++layer) {
    const auto& routing = model_.moe(layer).routing();
    observer_->routed(layer, routing.selection.indices, routing.weights);
  }
}

void Trainer::add_router_figures(const TokenBatch& batch) {
  const auto tokens = static_cast<double>(valid_tokens(batch));
  for (std::size_t layer = 0; layer < model_.layers(); ++layer) {
    const auto& moe = model_.moe(layer);
    const RouterLossValues values = moe.loss_values();
    loss_values_.aux += tokens * values.aux;
    loss_values_.z += tokens * values.z;
    dropped_ += dropped_assignments(moe.routing(), batch.valid);
    unserved_ += unserved_tokens(moe.routing(), batch.valid);
  }
}

std::map<std::string, double> Trainer::router_figures(std::span<const double> squares) const {
  std::map<std::string, double> figures;
  if (tokens_ == 0) return figures;
  figures["router_gradient"] = router_gradient(squares);
  const StableLatentMoESettings& moe = model_.settings().moe;
  const double terms = static_cast<double>(tokens_) * static_cast<double>(model_.layers());
  if (moe.losses.aux != AuxFormula::none) figures["aux_loss"] = loss_values_.aux / terms;
  if (moe.losses.z_coefficient > 0.0) figures["z_loss"] = loss_values_.z / terms;
  if (may_leave_tokens(moe.router.assignment)) {
    figures["unserved_tokens"] = static_cast<double>(unserved_) / terms;
  }
  if (moe.router.assignment.capacity.drop == DropPolicy::none) return figures;
  std::int64_t assignments = 0;
  for (const auto& layer : loads_) assignments = std::accumulate(layer.begin(), layer.end(), assignments);
  if (assignments > 0) {
    figures["drop_rate"] = static_cast<double>(dropped_) / static_cast<double>(assignments);
  }
  return figures;
}

void Trainer::inject_overflow() {
  model_.embedding.gradient.values()[0] = std::numeric_limits<float>::infinity();
}

double Trainer::router_gradient(std::span<const double> squares) const {
  const auto& parameters = optimizer_.parameters();
  double of_gates = 0.0, of_all = 0.0;
  for (std::size_t n = 0; n < parameters.size(); ++n) {
    of_all += squares[n];
    if (parameters[n].first.find("router.gate") != std::string::npos) of_gates += squares[n];
  }
  return of_all > 0.0 ? std::sqrt(of_gates / of_all) : 0.0;
}

StepOutcome Trainer::optim_step() {
  const std::vector<double> squares = optimizer_.squared_gradients(executor_);
  StepOutcome outcome{.applied = std::ranges::all_of(squares, [](double s) { return std::isfinite(s); }),
                      .loss = loss_sum_ / static_cast<double>(tokens_),
                      .loss_scale = loss_scale_.value(),
                      .tokens = tokens_,
                      .loads = {},
                      .router_figures = router_figures(squares)};
  outcome.loads = std::move(loads_);
  if (outcome.applied && tokens_ > 0) {
    optimizer_.step(loss_scale_.value() * static_cast<double>(tokens_), executor_);
  }
  for (std::size_t layer = 0; layer < model_.layers(); ++layer) {
    model_.moe(layer).end_step(outcome.applied);
  }
  loss_scale_.end_step(outcome.applied);
  begin_step();
  return outcome;
}

StateDict Trainer::state() const {
  if (pending_) throw std::logic_error("trainer: a state is saved between steps, not within one");
  StateDict state;
  save_parameters<float>(model_, state, "model.");
  optimizer_.save(state, "optimizer.");
  loss_scale_.save(state, "loss_scale.");
  for (std::size_t layer = 0; layer < model_.layers(); ++layer) {
    model_.moe(layer).balancer().save(state, layer_prefix(layer));
  }
  return state;
}

void Trainer::load_state(const StateDict& state) {
  load_parameters<float>(model_, state, "model.");
  optimizer_.load(state, "optimizer.");
  loss_scale_.load(state, "loss_scale.");
  for (std::size_t layer = 0; layer < model_.layers(); ++layer) {
    model_.moe(layer).balancer().load(state, layer_prefix(layer));
  }
  begin_step();
}

}  // namespace ballast::sim
