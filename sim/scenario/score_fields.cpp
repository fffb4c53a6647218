#include "sim/scenario/score_fields.h"

#include "sim/scenario/scenario_field.h"

namespace ballast::sim {
namespace {

template <class Member>
Field<Scenario> score_field(std::string path, Member member, FieldType type, std::string meaning) {
  return field(std::move(path), member, std::move(type), std::move(meaning))
      .when("mode", {"router_only"});
}

}  // namespace

std::vector<Field<Scenario>> score_fields() {
  return {
      field(
          "scores.preference", [](auto& s) -> auto& { return s.scores.preference; },
          "Law of the load shares of experts without any bias.")
          .when("mode", {"router_only"}),
      score_field(
          "scores.sigma", [](auto& s) -> auto& { return s.scores.sigma; },
          NumberType{.at_least = 0.0, .at_most = 10.0}, "Standard deviation of ln(load).")
          .when("scores.preference", {"log_normal"}),
      score_field(
          "scores.drift_steps", [](auto& s) -> auto& { return s.scores.drift_steps; }, range::count,
          "Steps until preferences have moved on to new ones; 0 is never.")
          .when("scores.preference", {"log_normal"}),
      score_field(
          "scores.exponent", [](auto& s) -> auto& { return s.scores.exponent; },
          NumberType{.at_least = 0.0, .at_most = 10.0}, "Exponent of Zipf's law.")
          .when("scores.preference", {"zipf"}),
      score_field(
          "scores.file", [](auto& s) -> auto& { return s.scores.file; }, TextType{TextForm::file},
          "Recording of routing or loads, whose layers in turn give the shares; with "
          "`recorded_rows` of routing token by token, whose tokens' choices are taken over.")
          .when("scores.preference", {"recorded", "recorded_rows"}),
      score_field(
          "scores.hot_share", [](auto& s) -> auto& { return s.scores.hot_share; }, range::below_one,
          "Share of tokens that choose one hot expert of each layer; 0 is none."),
      score_field(
          "scores.shift", [](auto& s) -> auto& { return s.scores.shift; }, range::below_one,
          "Domain shift: total variation between the load shares of another domain and these."),
      score_field(
          "scores.shift_weight", [](auto& s) -> auto& { return s.scores.shift_weight; },
          range::probability, "Part of the load that is of that other domain."),
      score_field(
          "scores.rank_skew", [](auto& s) -> auto& { return s.scores.rank_skew; }, range::below_one,
          "Total variation between the load shares of each other rank and rank 0."),
      score_field(
          "scores.token_driven", [](auto& s) -> auto& { return s.scores.token_driven; },
          range::probability, "Probability that a choice depends on the token id alone."),
      score_field(
          "scores.sequence_memory", [](auto& s) -> auto& { return s.scores.sequence_memory; },
          range::below_one, "Probability that a choice is that of the token before."),
      score_field(
          "scores.scale", [](auto& s) -> auto& { return s.scores.scale; },
          NumberType{.at_least = 0.0, .at_most = 1e6},
          "Factor on all logits; large ones leave a bounded bias no say."),
      score_field(
          "scores.offset", [](auto& s) -> auto& { return s.scores.offset; }, range::moderate,
          "Added to all logits: a common component, which sigmoid scores saturate under."),
      score_field(
          "scores.aligned_share", [](auto& s) -> auto& { return s.scores.aligned_share; },
          range::probability, "Share of tokens that point along the gate of one expert."),
      score_field(
          "scores.aligned_expert", [](auto& s) -> auto& { return s.scores.aligned_expert; },
          range::count, "That expert; below `model.routed_experts`."),
      score_field(
          "scores.aligned_by", [](auto& s) -> auto& { return s.scores.aligned_by; },
          range::moderate, "What aligned tokens have on top of that expert's logit."),
      score_field(
          "scores.nonfinite_share", [](auto& s) -> auto& { return s.scores.nonfinite_share; },
          range::probability, "Share of tokens whose logits are not numbers."),
  };
}

const std::vector<Field<ScheduleEntry>>& schedule_fields() {
  static const std::vector<Field<ScheduleEntry>> fields = {
      bind_field<ScheduleEntry>(
          "from", [](auto& e) -> auto& { return e.from; }, range::positive_count,
          "First step with the new values."),
      bind_field<ScheduleEntry>(
          "over", [](auto& e) -> auto& { return e.over; }, range::count,
          "Steps over which numbers move evenly to the new values; 0 is at once."),
  };
  return fields;
}

}  // namespace ballast::sim
