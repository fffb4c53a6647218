#include "core/model/router.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "core/arithmetic/functions.h"
#include "core/arithmetic/reductions.h"
#include "core/assignment/expert_choice.h"
#include "core/assignment/optimal_assignment.h"
#include "core/kernels/kernels.h"

namespace ballast {

namespace {

const RouterSettings& checked(const RouterSettings& settings) {
  if (settings.top_k < 1 || settings.top_k > settings.routed_experts) {
    throw std::invalid_argument("router: top_k is " + std::to_string(settings.top_k) + ", not within 1.." +
                                std::to_string(settings.routed_experts) + " (the routed experts)");
  }
  if (const auto wrong = problem(settings.groups, settings.routed_experts, settings.top_k)) {
    throw std::invalid_argument("router: " + *wrong);
  }
  return settings;
}

template <class Real>
void softmax_rows(MatrixView<Real> rows) {
  for (std::size_t t = 0; t < rows.rows(); ++t) arithmetic::softmax(rows.row(t), rows.row(t));
}

template <class Real>
std::vector<std::uint8_t> finite_rows(const Matrix<Real>& scores) {
  std::vector<std::uint8_t> finite(scores.rows());
  for (std::size_t t = 0; t < scores.rows(); ++t) {
    bool all = true;
    for (const Real s : scores.row(t)) all &= std::isfinite(s);
    finite[t] = all;
  }
  return finite;
}

/// Small enough to vanish in any sum that is not nearly zero itself; in K3's code.
constexpr double denominator_guard = 1e-20;

template <class Real>
void weigh(Routing<Real>& routing, const RouterSettings& settings) {
  const auto& indices = routing.selection.indices;
  const auto& gates = gates_of(routing);
  const auto scale = static_cast<Real>(settings.routed_scale);
  routing.weights = {indices.rows(), indices.cols()};
  if (settings.renormalize) routing.weight_sums.resize(indices.rows());
  for (std::size_t t = 0; t < indices.rows(); ++t) {
    const auto chosen = indices.row(t);
    const auto p = routing.weights.row(t);
    Real sum{0};
    for (std::size_t slot = 0; slot < chosen.size(); ++slot) {
      if (chosen[slot] == no_expert) continue;
      p[slot] = gates(t, static_cast<std::size_t>(chosen[slot]));
      sum += p[slot];
    }
    if (settings.renormalize) {
      routing.weight_sums[t] = sum;
      for (Real& weight : p) weight /= sum + static_cast<Real>(denominator_guard);
    }
    for (Real& weight : p) weight *= scale;
  }
}

/// The rows that may take a place from others: valid ones without a score that is not finite.
template <class Real>
std::vector<std::uint8_t> competing_rows(const Routing<Real>& routing, std::span<const std::uint8_t> valid) {
  std::vector<std::uint8_t> competing = routing.finite;
  for (std::size_t t = 0; t < valid.size(); ++t) competing[t] = competing[t] && valid[t];
  return competing;
}

template <class Real>
void drop(Routing<Real>& routing, const RouterSettings& settings, std::span<const std::uint8_t> valid) {
  const auto& capacity = settings.assignment.capacity;
  const auto competing = competing_rows(routing, valid);
  const auto tokens = std::ranges::count(competing, std::uint8_t{1});
  routing.kept = drop_beyond<Real>(expert_capacity(capacity.factor, tokens, settings.top_k, settings.routed_experts),
                                   capacity.drop, routing.selection.indices, routing.weights, competing,
                                   settings.routed_experts);
  for (std::size_t i = 0; i < routing.weights.values().size(); ++i) {
    if (routing.kept.values()[i] == no_expert) routing.weights.values()[i] = Real{0};
  }
}

}  // namespace

template <class Real>
Router<Real>::Router(const RouterSettings& settings, bool keep_logits)
    : gate(checked(settings).routed_experts, settings.hidden),
      settings_(settings),
      keep_logits_(keep_logits || settings.assignment.rule == AssignmentRule::sinkhorn) {
  this->add_module("gate", gate);
}

template <class Real>
Routing<Real> Router<Real>::forward(MatrixView<const Real> x, std::span<const float> biases,
                                    const Executor& executor, const RoutingContext& context) const {
  Routing<Real> routing;
  forward_in_place(x, routing, biases, executor, context);
  return routing;
}

template <class Real>
void Router<Real>::forward_in_place(MatrixView<const Real> x, Routing<Real>& routing,
                                    std::span<const float> biases, const Executor& executor,
                                    const RoutingContext& context) const {
  routing.scores.reshape(x.rows(), settings_.routed_experts);
  gate.forward(x, routing.scores, executor);
  route_in_place(routing, biases, context);
}

template <class Real>
Routing<Real> Router<Real>::route(Matrix<Real> logits, std::span<const float> biases,
                                  const RoutingContext& context) const {
  Routing<Real> routing;
  routing.scores = std::move(logits);
  route_in_place(routing, biases, context);
  return routing;
}

template <class Real>
void Router<Real>::route_in_place(Routing<Real>& routing, std::span<const float> biases,
                                  const RoutingContext& context) const {
  if (routing.scores.cols() != settings_.routed_experts || biases.size() != settings_.routed_experts) {
    throw std::invalid_argument("router: " + std::to_string(routing.scores.cols()) + " logits a token and " +
                                std::to_string(biases.size()) + " biases for " +
                                std::to_string(settings_.routed_experts) + " routed experts");
  }
  if (keep_logits_) routing.logits = routing.scores;
  if constexpr (std::is_same_v<Real, float>) {
    if (chooses_by_token(context) && !settings_.groups.limit()) {
      route_by_kernels(routing, biases);
      if (settings_.assignment.capacity.drop != DropPolicy::none) drop(routing, settings_, context.valid);
      return;
    }
  }
  switch (settings_.score) {
    case ScoreFunction::sigmoid:
      arithmetic::sigmoid(routing.scores.values(), routing.scores.values());
      break;
    case ScoreFunction::softmax:
      softmax_rows(routing.scores.view());
      break;
    case ScoreFunction::logit:
      routing.gates = routing.scores;
      softmax_rows(routing.gates.view());
      break;
  }
  routing.finite = finite_rows(routing.scores);
  routing.selection = choose(routing, biases, context);
  weigh(routing, settings_);
  if (settings_.assignment.capacity.drop != DropPolicy::none) drop(routing, settings_, context.valid);
}

/// Scores, choices and weights of each row in one go.
template <class Real>
void Router<Real>::route_by_kernels(Routing<float>& routing, std::span<const float> biases) const {
  const std::size_t tokens = routing.scores.rows(), experts = routing.scores.cols(), k = settings_.top_k;
  const bool sigmoid = settings_.score == ScoreFunction::sigmoid;
  if (settings_.score == ScoreFunction::softmax) softmax_rows(routing.scores.view());
  if (settings_.score == ScoreFunction::logit) {
    routing.gates = routing.scores;
    softmax_rows(routing.gates.view());
  }
  routing.selection.indices.reshape(tokens, k);
  routing.weights.reshape(tokens, k);
  routing.selection.cutoffs.resize(k < experts ? tokens : 0);
  routing.weight_sums.resize(settings_.renormalize ? tokens : 0);
  routing.finite.resize(tokens);
  std::vector<float> scratch(kernels::row_scratch(experts));
  std::vector<std::int32_t> index_scratch(kernels::row_scratch(experts));
  kernels::active().route({.tokens = tokens,
                           .experts = experts,
                           .top_k = k,
                           .biases = biases.data(),
                           .logits = sigmoid ? routing.scores.data() : nullptr,
                           .logits_stride = experts,
                           .scores = routing.scores.data(),
                           .scores_stride = experts,
                           .gates = gates_of(routing).data(),
                           .gates_stride = experts,
                           .renormalize = settings_.renormalize,
                           .scale = static_cast<float>(settings_.routed_scale),
                           .indices = routing.selection.indices.data(),
                           .weights = routing.weights.data(),
                           .weight_sums = settings_.renormalize ? routing.weight_sums.data() : nullptr,
                           .cutoffs = k < experts ? routing.selection.cutoffs.data() : nullptr,
                           .finite = routing.finite.data(),
                           .scratch = scratch.data(),
                           .index_scratch = index_scratch.data()});
}

/// Whether each token takes its best experts: rules that need a whole batch leave evaluation to this.
template <class Real>
bool Router<Real>::chooses_by_token(const RoutingContext& context) const {
  const AssignmentRule rule = settings_.assignment.rule;
  const bool only_in_training = rule == AssignmentRule::sinkhorn || rule == AssignmentRule::optimal;
  return rule == AssignmentRule::top_k || (only_in_training && !context.training);
}

template <class Real>
Selection<Real> Router<Real>::choose(const Routing<Real>& routing, std::span<const float> biases,
                                     const RoutingContext& context) const {
  const auto competing = [&] { return competing_rows(routing, context.valid); };
  if (chooses_by_token(context)) {
    return settings_.groups.limit()
               ? select_group_limited_top_k<Real>(routing.scores, biases, settings_.top_k, settings_.groups)
               : select_top_k<Real>(routing.scores, biases, settings_.top_k);
  }
  switch (settings_.assignment.rule) {
    case AssignmentRule::top_k:
      break;
    case AssignmentRule::sinkhorn: {
      const auto plan = sinkhorn_plan<Real>(routing.logits, competing(), settings_.assignment.sinkhorn).plan;
      const std::vector<float> unbiased(biases.size(), 0.0f);
      return {.indices = select_top_k<double>(plan, unbiased, settings_.top_k).indices, .cutoffs = {}};
    }
    case AssignmentRule::expert_choice:
      return {.indices = choose_by_expert<Real>(routing.scores, biases, competing(), settings_.top_k), .cutoffs = {}};
    case AssignmentRule::threshold:
      return {.indices = choose_above_threshold<Real>(routing.scores, biases), .cutoffs = {}};
    case AssignmentRule::optimal:
      return {.indices = assign_optimally<Real>(routing.scores, competing(), settings_.top_k), .cutoffs = {}};
  }
  throw std::invalid_argument("router: there is no such rule of assignment");
}

// p_j = c g_j / (S + eps) gives dg_j = c (dp_j - sum_t dp_t g_t / (S + eps)) / (S + eps) for chosen j;
// sigmoid: dz = dg g (1 - g);  softmax: dz_i = g_i (dg_i - sum_j dg_j g_j), over all experts.
template <class Real>
Matrix<Real> Router<Real>::logit_gradient(const Routing<Real>& routing, MatrixView<const Real> dp) const {
  const auto& gates = gates_of(routing);
  const auto scale = static_cast<Real>(settings_.routed_scale);
  Matrix<Real> dz(gates.rows(), gates.cols());
  std::vector<Real> dg(dp.cols());
  for (std::size_t t = 0; t < gates.rows(); ++t) {
    const auto chosen = routing.selection.indices.row(t);
    const auto is_chosen = [&](std::size_t slot) { return chosen[slot] != no_expert; };
    const auto gate_at = [&](std::size_t slot) {
      return is_chosen(slot) ? gates(t, static_cast<std::size_t>(chosen[slot])) : Real{0};
    };
    for (std::size_t slot = 0; slot < dg.size(); ++slot) dg[slot] = dp(t, slot) * scale;
    if (settings_.renormalize) {
      const Real denominator = routing.weight_sums[t] + static_cast<Real>(denominator_guard);
      Real mean{0};
      for (std::size_t slot = 0; slot < dg.size(); ++slot) {
        mean = std::fma(dg[slot], gate_at(slot) / denominator, mean);
      }
      for (Real& g : dg) g = (g - mean) / denominator;
    }
    if (settings_.score == ScoreFunction::sigmoid) {
      for (std::size_t slot = 0; slot < dg.size(); ++slot) {
        if (!is_chosen(slot)) continue;
        const Real s = gate_at(slot);
        dz(t, static_cast<std::size_t>(chosen[slot])) = dg[slot] * s * (Real{1} - s);
      }
    } else {
      Real inner{0};
      for (std::size_t slot = 0; slot < dg.size(); ++slot) inner = std::fma(dg[slot], gate_at(slot), inner);
      const auto row = dz.row(t);
      for (std::size_t slot = 0; slot < dg.size(); ++slot) {
        if (is_chosen(slot)) row[static_cast<std::size_t>(chosen[slot])] = dg[slot];
      }
      const auto g = gates.row(t);
      for (std::size_t j = 0; j < row.size(); ++j) row[j] = g[j] * (row[j] - inner);
    }
  }
  return dz;
}

template <class Real>
void Router<Real>::backward(MatrixView<const Real> x, MatrixView<const Real> dz, MatrixView<Real> dx,
                            const Executor& executor) {
  gate.backward_weight(x, dz, executor);
  gate.backward_input(dz, dx, executor);
}

template class Router<float>;
template class Router<double>;

}  // namespace ballast
