#include "sim/scenario/balancer_fields.h"

namespace ballast::sim {
namespace {

using Fields = std::vector<Field<Scenario>>;

constexpr NumberType positive{.above = 0.0, .at_most = 1e6};
constexpr NumberType below_one{.at_least = 0.0, .below = 1.0};

constexpr const char* kind = "balancer.kind";

template <class Member>
Field<Scenario> field(std::string path, Member member, FieldType type, std::string meaning) {
  return bind_field<Scenario>(std::move(path), member, std::move(type), std::move(meaning));
}

template <class Member>
Field<Scenario> field(std::string path, Member member, std::string meaning) {
  return bind_field<Scenario>(std::move(path), member, std::move(meaning));
}

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
          kind, [](auto& s) -> auto& { return s.balancer.kind; }, "How biases are kept."),
      common_field(
          "balancer.update",
          "Whether biases move at the optimizer step or at each training forward.",
          [](auto& s) -> auto& { return s.balancer.quantile.update; },
          [](auto& s) -> auto& { return s.balancer.sign.loads.update; },
          [](auto& s) -> auto& { return s.balancer.smebu.loads.update; })
          .when(kind, {"quantile", "sign", "smebu", "none"}),
      common_field(
          "balancer.on_skipped_step",
          "What a step skipped on overflow does with the observations of its forwards.",
          [](auto& s) -> auto& { return s.balancer.quantile.on_skipped_step; },
          [](auto& s) -> auto& { return s.balancer.sign.loads.on_skipped_step; },
          [](auto& s) -> auto& { return s.balancer.smebu.loads.on_skipped_step; })
          .when(kind, {"quantile", "sign", "smebu", "none"}),
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
          "balancer.ema", [](auto& s) -> auto& { return s.balancer.quantile.ema; }, below_one,
          "Share of the old bias that is kept; 0 is off. Not together with `balancer.gain`.")
          .when(kind, quantile_or_none),
      field(
          "balancer.gain", [](auto& s) -> auto& { return s.balancer.quantile.gain; }, positive,
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
          "balancer.rate", [](auto& s) -> auto& { return s.balancer.sign.rate; }, positive,
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
          "balancer.lambda", [](auto& s) -> auto& { return s.balancer.smebu.rate; }, positive,
          "Largest move of a bias at an update, before centring and momentum.")
          .when(kind, {"smebu"}),
      field(
          "balancer.kappa", [](auto& s) -> auto& { return s.balancer.smebu.kappa; }, positive,
          "How soon a move saturates: it is lambda tanh(kappa (mean(L) - L_j) / mean(L)).")
          .when(kind, {"smebu"}),
      field(
          "balancer.momentum", [](auto& s) -> auto& { return s.balancer.smebu.momentum; },
          below_one, "Share of the last move that is kept in the next.")
          .when(kind, {"smebu"}),
  };
}

}  // namespace

Fields balancer_fields() {
  Fields fields;
  for (Fields part : {common_fields(), quantile_fields(), sign_fields(), smebu_fields()}) {
    fields.insert(fields.end(), std::make_move_iterator(part.begin()),
                  std::make_move_iterator(part.end()));
  }
  return fields;
}

}  // namespace ballast::sim
