#include "sim/scenario/contradictions.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "sim/scenario/field_type.h"
#include "sim/scenario/words.h"

namespace ballast::sim {
namespace {

using Found = std::optional<Contradiction>;

std::string text(std::size_t value) {
  return std::to_string(value);
}
std::string text(double value) {
  return Json(value).dump();
}

Found more_choices_than_experts(const Scenario& s) {
  const RouterSettings& router = s.model.moe.router;
  if (router.top_k <= router.routed_experts) return std::nullopt;
  return Contradiction{{"model.top_k", "model.routed_experts"},
                       "top_k is " + text(router.top_k) + " and there are " +
                           text(router.routed_experts) + " routed experts",
                       "a token chooses at most all of them"};
}

Found nothing_to_balance(const Scenario& s) {
  const RouterSettings& router = s.model.moe.router;
  const bool by_quantiles =
      s.balancer.kind == BalancerKind::quantile || s.balancer.kind == BalancerKind::threshold;
  if (!by_quantiles || router.top_k != router.routed_experts) return std::nullopt;
  return Contradiction{
      {"balancer.kind", "model.top_k", "model.routed_experts"},
      "quantile balancing needs an expert that is not chosen, and each token chooses all " +
          text(router.routed_experts),
      "make top_k smaller, or set balancer.kind to \"none\""};
}

Found impossible_groups(const Scenario& s) {
  const RouterSettings& router = s.model.moe.router;
  const auto why = problem(router.groups, router.routed_experts, router.top_k);
  if (!why) return std::nullopt;
  return Contradiction{{"model.groups.count", "model.groups.chosen", "model.groups.score",
                        "model.top_k", "model.routed_experts"},
                       *why,
                       "groups are of one size and hold the experts that a token chooses"};
}

Found quantiles_of_groups(const Scenario& s) {
  if (s.balancer.kind != BalancerKind::quantile || !s.model.moe.router.groups.limit()) {
    return std::nullopt;
  }
  return Contradiction{
      {"balancer.kind", "model.groups.count"},
      "quantile balancing needs the one score that an expert has to pass to be chosen, and with "
      "groups it depends on the scores of the whole group",
      "set model.groups.count to 1, or balancer.kind to \"sign\""};
}

bool is_rule(BalancerKind kind) {
  return kind == BalancerKind::sinkhorn || kind == BalancerKind::expert_choice ||
         kind == BalancerKind::threshold || kind == BalancerKind::optimal;
}

std::string quoted(BalancerKind kind) {
  return "\"" + std::string(word(kind)) + "\"";
}

Found groups_of_another_rule(const Scenario& s) {
  if (!is_rule(s.balancer.kind) || !s.model.moe.router.groups.limit()) return std::nullopt;
  return Contradiction{{"balancer.kind", "model.groups.count"},
                       "groups limit how a token chooses its top_k experts, and with " +
                           quoted(s.balancer.kind) + " it does not",
                       "set model.groups.count to 1"};
}

Found capacity_of_equal_loads(const Scenario& s) {
  const bool equal =
      s.balancer.kind == BalancerKind::expert_choice || s.balancer.kind == BalancerKind::optimal;
  if (!equal || s.model.moe.router.assignment.capacity.drop == DropPolicy::none)
    return std::nullopt;
  return Contradiction{{"balancer.drop", "balancer.kind"},
                       quoted(s.balancer.kind) +
                           " gives all experts the same load, so none is above another's capacity",
                       "set balancer.drop to \"none\""};
}

Found two_ways_to_balance_a_batch(const Scenario& s) {
  const bool assigned = s.balancer.kind == BalancerKind::sinkhorn ||
                        s.balancer.kind == BalancerKind::expert_choice ||
                        s.balancer.kind == BalancerKind::optimal;
  if (!assigned || s.model.moe.losses.aux == AuxFormula::none) return std::nullopt;
  return Contradiction{
      {"balancer.aux_loss", "balancer.kind"},
      quoted(s.balancer.kind) +
          " balances every batch itself, and the loss would push the scores for loads "
          "that no token gets",
      "set balancer.aux_loss to \"none\""};
}

Found counts_of_no_loads(const Scenario& s) {
  const BalancerKind kind = s.balancer.kind;
  const bool counts = kind == BalancerKind::sign || kind == BalancerKind::smebu;
  if (s.fault != BalancerFault::bf16_counts || counts) return std::nullopt;
  return Contradiction{{"fault", "balancer.kind"},
                       quoted(kind) + " counts no loads, so there are no counts to keep in bf16",
                       "set balancer.kind to \"sign\" or \"smebu\", or fault to \"none\""};
}

Found two_dampings(const Scenario& s) {
  if (s.balancer.quantile.ema == 0.0 || s.balancer.quantile.gain == 1.0) return std::nullopt;
  return Contradiction{{"balancer.gain", "balancer.ema"},
                       "ema (" + text(s.balancer.quantile.ema) + ") and gain (" +
                           text(s.balancer.quantile.gain) + ") are both on",
                       "leave ema at 0 or gain at 1"};
}

Found token_outside_vocabulary(const Scenario& s) {
  if (s.tokens.source != TokenSourceKind::constant || s.tokens.token < s.tokens.vocabulary) {
    return std::nullopt;
  }
  return Contradiction{
      {"tokens.token", "tokens.vocabulary"},
      "token " + text(s.tokens.token) + " is outside a vocabulary of " + text(s.tokens.vocabulary),
      "tokens are numbered from 0"};
}

/// Loads are counted in int64, and metrics take them for doubles: every count has to be exact in
/// both.
Found batch_beyond_counting(const Scenario& s) {
  constexpr std::size_t most = std::size_t{1} << 53;
  std::size_t assignments = s.model.moe.router.top_k;
  for (const std::size_t factor : {s.training.ranks, s.training.micro_batches, s.training.sequences,
                                   s.tokens.sequence_length}) {
    if (assignments > most / factor) {
      return Contradiction{
          {"training.sequences", "training.ranks", "training.micro_batches",
           "tokens.sequence_length", "model.top_k"},
          "ranks x micro_batches x sequences x sequence_length x top_k is above 2^53",
          "make the global batch smaller"};
    }
    assignments *= factor;
  }
  return std::nullopt;
}

/// An event is more probable than 1 when its parts are added up, or a token cannot be.
Found odd_scores(const Scenario& s) {
  if (s.mode != Mode::router_only) return std::nullopt;
  if (s.scores.nonfinite_share + s.scores.aligned_share > 1.0) {
    return Contradiction{{"scores.aligned_share", "scores.nonfinite_share"},
                         "the shares sum to more than 1",
                         "a token is of one kind"};
  }
  if (s.scores.aligned_expert >= s.model.moe.router.routed_experts) {
    return Contradiction{{"scores.aligned_expert", "model.routed_experts"},
                         "expert " + text(s.scores.aligned_expert) + " is none of " +
                             text(s.model.moe.router.routed_experts),
                         "experts are numbered from 0"};
  }
  if (s.model.moe.router.top_k == s.model.moe.router.routed_experts) {
    return Contradiction{{"mode", "model.top_k", "model.routed_experts"},
                         "drawn scores choose between experts, and each token chooses all of them",
                         "make top_k smaller"};
  }
  const bool recorded = s.scores.preference == PreferenceLaw::recorded ||
                        s.scores.preference == PreferenceLaw::recorded_rows;
  if (recorded && s.scores.file.empty()) {
    return Contradiction{{"scores.preference", "scores.file"},
                         "there is no recording to take the shares from",
                         "set scores.file"};
  }
  return std::nullopt;
}

Found metric_and_collapse(const Expectation& e, const Scenario&) {
  if (!e.collapse || (e.metric.empty() && !e.at_most && !e.at_least)) return std::nullopt;
  return Contradiction{{"collapse", "metric", "at_most", "at_least"},
                       "a collapse has no metric and no bound",
                       "make two entries of it"};
}

Found training_without_model(const Expectation& e, const Scenario& s) {
  constexpr std::array<std::string_view, 7> of_training = {
      "loss", "eval_loss", "router_gradient", "drop_rate", "unserved_tokens", "aux_loss", "z_loss"};
  if (s.mode == Mode::train || std::ranges::count(of_training, e.metric) == 0) return std::nullopt;
  return Contradiction{{"metric"}, "routers alone have no " + e.metric, "set mode to \"train\""};
}

Found no_bound(const Expectation& e, const Scenario&) {
  if (e.at_most || e.at_least || e.collapse) return std::nullopt;
  return Contradiction{{"metric"}, "nothing is expected of it", "give at_most, at_least or both"};
}

Found no_value_in_bounds(const Expectation& e, const Scenario&) {
  if (!e.at_most || !e.at_least || *e.at_least <= *e.at_most) return std::nullopt;
  return Contradiction{
      {"at_least", "at_most"},
      "at_least (" + text(*e.at_least) + ") is above at_most (" + text(*e.at_most) + ")",
      "no value could meet both"};
}

Found until_before_from(const Expectation& e, const Scenario&) {
  if (!e.until || *e.until >= e.from) return std::nullopt;
  return Contradiction{{"until", "from"},
                       "until (" + text(*e.until) + ") is before from (" + text(e.from) + ")",
                       "steps go from the first to the last"};
}

Found never_evaluated(const Expectation& e, const Scenario& s) {
  if (e.metric != "eval_loss" || s.training.evaluate_every > 0) return std::nullopt;
  return Contradiction{{"metric"}, "the run never evaluates", "set training.evaluate_every"};
}

Found never_measured(const Expectation& e, const Scenario& s) {
  const auto& moe = s.model.moe;
  const auto missing = [&](const char* field) {
    return Contradiction{{"metric"}, "the run has no " + e.metric, std::string("set ") + field};
  };
  if (e.metric == "drop_rate" && moe.router.assignment.capacity.drop == DropPolicy::none) {
    return missing("balancer.drop");
  }
  if (e.metric == "unserved_tokens" && moe.router.assignment.capacity.drop == DropPolicy::none &&
      s.balancer.kind != BalancerKind::expert_choice &&
      s.balancer.kind != BalancerKind::threshold) {
    return missing("balancer.drop, or balancer.kind to \"expert_choice\" or \"threshold\"");
  }
  if (e.metric == "aux_loss" && moe.losses.aux == AuxFormula::none)
    return missing("balancer.aux_loss");
  if (e.metric == "z_loss" && moe.losses.z_coefficient == 0.0) return missing("balancer.z_loss");
  return std::nullopt;
}

}  // namespace

std::optional<Contradiction> contradiction_in(const Scenario& scenario) {
  for (const auto rule : {more_choices_than_experts, nothing_to_balance, impossible_groups,
                          quantiles_of_groups, groups_of_another_rule, capacity_of_equal_loads,
                          two_ways_to_balance_a_batch, counts_of_no_loads, two_dampings,
                          token_outside_vocabulary, batch_beyond_counting, odd_scores}) {
    if (auto found = rule(scenario)) return found;
  }
  return std::nullopt;
}

std::optional<Contradiction> contradiction_in(const Expectation& expectation,
                                              const Scenario& scenario) {
  for (const auto rule : {metric_and_collapse, training_without_model, no_bound, no_value_in_bounds,
                          until_before_from, never_evaluated, never_measured}) {
    if (auto found = rule(expectation, scenario)) return found;
  }
  return std::nullopt;
}

}  // namespace ballast::sim
