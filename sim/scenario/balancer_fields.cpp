#include "sim/scenario/balancer_fields.h"

#include "sim/scenario/scenario_field.h"

namespace ballast::sim {
namespace {

using Fields = std::vector<Field<Scenario>>;

constexpr const char* kind = "balancer.kind";

/// A field that several kinds of balancers have in common: it sets the member of each.
template <class Member, class... Members>
Field<Scenario> common_field(std::string path, std::string meaning, Member first,
                             Members... others) {
  Field<Scenario> common = field(std::move(path), first, std::move(meaning));
  common.assign = [first, others...](Scenario& s, const Json& value) {
    binding::read(value, first(s));
    (binding::read(value, others(s)), ...);
  };
  return common;
}

Fields common_fields() {
  return {
      field(
          kind, [](auto& s) -> auto& { return s.balancer.kind; },
          "What keeps loads in balance: how biases move, or how a batch is assigned."),
      common_field(
          "balancer.update",
          "Whether biases move at the optimizer step or at each training forward.",
          [](auto& s) -> auto& { return s.balancer.quantile.update; },
          [](auto& s) -> auto& { return s.balancer.sign.loads.update; },
          [](auto& s) -> auto& { return s.balancer.smebu.loads.update; },
          [](auto& s) -> auto& { return s.balancer.threshold.update; })
          .when(kind, {"quantile", "sign", "smebu", "threshold", "none"}),
      common_field(
          "balancer.on_skipped_step",
          "What a step skipped on overflow does with the observations of its forwards.",
          [](auto& s) -> auto& { return s.balancer.quantile.on_skipped_step; },
          [](auto& s) -> auto& { return s.balancer.sign.loads.on_skipped_step; },
          [](auto& s) -> auto& { return s.balancer.smebu.loads.on_skipped_step; },
          [](auto& s) -> auto& { return s.balancer.threshold.on_skipped_step; })
          .when(kind, {"quantile", "sign", "smebu", "threshold", "none"}),
      common_field(
          "balancer.counted",
          "Whether loads are what the router chose, or what was kept where experts have a "
          "capacity.",
          [](auto& s) -> auto& { return s.balancer.sign.loads.counted; },
          [](auto& s) -> auto& { return s.balancer.smebu.loads.counted; })
          .when(kind, {"sign", "smebu"}),
  };
}

/// Without balancing they mean nothing and are allowed all the same, for variants with it.
const std::vector<std::string> quantile_or_none = {"quantile", "none"};

Fields quantile_fields() {
  return {
      field(
          "balancer.estimator", [](auto& s) -> auto& { return s.balancer.quantile.estimator; },
          "How the next bias is estimated from a step's scores.")
          .when(kind, quantile_or_none),
      field(
          "balancer.bins", [](auto& s) -> auto& { return s.balancer.quantile.bins; },
          IntegerType{.at_least = 2, .at_most = 100'000'000}, "Bins of the `histogram` estimator.")
          .when(kind, quantile_or_none),
      field(
          "balancer.ema", [](auto& s) -> auto& { return s.balancer.quantile.ema; },
          range::below_one,
          "Share of the old bias that is kept; 0 is off. Not together with `balancer.gain`.")
          .when(kind, quantile_or_none),
      field(
          "balancer.gain", [](auto& s) -> auto& { return s.balancer.quantile.gain; },
          range::positive,
          "Factor on the move to the estimate; 1 is off. Not together with `balancer.ema`.")
          .when(kind, quantile_or_none),
      field(
          "balancer.stale_updates",
          [](auto& s) -> auto& { return s.balancer.quantile.stale_updates; },
          IntegerType{.at_least = 0, .at_most = 1'000'000},
          "Each update uses the estimate made this many updates before.")
          .when(kind, quantile_or_none),
  };
}

Fields sign_fields() {
  return {
      field(
          "balancer.rate", [](auto& s) -> auto& { return s.balancer.sign.rate; }, range::positive,
          "Increment u of a bias at an update.")
          .when(kind, {"sign"}),
      field(
          "balancer.step", [](auto& s) -> auto& { return s.balancer.sign.step; },
          "Whether a move is the sign of mean(L) - L_j, or that difference over its RMS.")
          .when(kind, {"sign"}),
      field(
          "balancer.centred", [](auto& s) -> auto& { return s.balancer.sign.centred; },
          BooleanType{}, "Whether the moves of a layer are made to have mean 0.")
          .when(kind, {"sign"}),
  };
}

Fields smebu_fields() {
  return {
      field(
          "balancer.lambda", [](auto& s) -> auto& { return s.balancer.smebu.rate; },
          range::positive, "Largest move of a bias at an update, before centring and momentum.")
          .when(kind, {"smebu"}),
      field(
          "balancer.kappa", [](auto& s) -> auto& { return s.balancer.smebu.kappa; },
          range::positive,
          "How soon a move saturates: it is lambda tanh(kappa (mean(L) - L_j) / mean(L)).")
          .when(kind, {"smebu"}),
      field(
          "balancer.momentum", [](auto& s) -> auto& { return s.balancer.smebu.momentum; },
          range::below_one, "Share of the last move that is kept in the next.")
          .when(kind, {"smebu"}),
  };
}

Fields assignment_fields() {
  return {
      field(
          "balancer.sinkhorn_iterations",
          [](auto& s) -> auto& { return s.model.moe.router.assignment.sinkhorn.iterations_max; },
          IntegerType{.at_least = 1, .at_most = 1'000'000}, "Iterations at most.")
          .when(kind, {"sinkhorn"}),
      field(
          "balancer.sinkhorn_tolerance",
          [](auto& s) -> auto& { return s.model.moe.router.assignment.sinkhorn.tolerance; },
          range::not_negative, "Mean change of an expert's factor at which iterating ends.")
          .when(kind, {"sinkhorn"}),
      field(
          "balancer.threshold_ema", [](auto& s) -> auto& { return s.balancer.threshold.ema; },
          range::below_one, "Share of the old threshold that is kept at an update.")
          .when(kind, {"threshold"}),
  };
}

constexpr const char* drop = "balancer.drop";
constexpr const char* aux = "balancer.aux_loss";
const std::vector<std::string> some_aux = {"megatron", "without_k", "switch_top_1", "gshard"};

Fields capacity_fields() {
  return {
      field(
          drop, [](auto& s) -> auto& { return s.model.moe.router.assignment.capacity.drop; },
          "Which assignments an expert keeps that has more than its capacity: the largest weights, "
          "or the first tokens; `none`: there is no capacity."),
      field(
          "balancer.capacity_factor",
          [](auto& s) -> auto& { return s.model.moe.router.assignment.capacity.factor; },
          range::positive,
          "An expert keeps ceil(factor tokens top_k / routed_experts) assignments of a "
          "micro-batch.")
          .when(drop, {"probs", "position"}),
  };
}

Fields loss_fields() {
  return {
      field(
          aux, [](auto& s) -> auto& { return s.model.moe.losses.aux; },
          "Formula of the load-balancing loss that is added to the model's."),
      field(
          "balancer.aux_coefficient",
          [](auto& s) -> auto& { return s.model.moe.losses.aux_coefficient; }, range::not_negative,
          "Factor on it.")
          .when(aux, some_aux),
      field(
          "balancer.aux_scope", [](auto& s) -> auto& { return s.model.moe.losses.aux_scope; },
          "The tokens whose loads it sees; `global` is the step so far.")
          .when(aux, some_aux),
      field(
          "balancer.z_loss", [](auto& s) -> auto& { return s.model.moe.losses.z_coefficient; },
          range::not_negative,
          "Factor on the mean square of log(sum(exp(logits))), added; 0 is off."),
  };
}

}  // namespace

Fields balancer_fields() {
  Fields fields;
  for (Fields part : {common_fields(), quantile_fields(), sign_fields(), smebu_fields(),
                      assignment_fields(), capacity_fields(), loss_fields()}) {
    fields.insert(fields.end(), std::make_move_iterator(part.begin()),
                  std::make_move_iterator(part.end()));
  }
  return fields;
}

}  // namespace ballast::sim
