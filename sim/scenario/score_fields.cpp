#include "sim/scenario/score_fields.h"

namespace ballast::sim {
namespace {

constexpr NumberType share{.at_least = 0.0, .at_most = 1.0};
constexpr NumberType below_one{.at_least = 0.0, .below = 1.0};
constexpr NumberType moderate{.at_least = -1e6, .at_most = 1e6};
constexpr IntegerType count{.at_least = 0, .at_most = 1'000'000'000};
constexpr IntegerType step{.at_least = 1, .at_most = 1'000'000'000};

template <class Member>
Field<Scenario> field(std::string path, Member member, FieldType type, std::string meaning) {
  return bind_field<Scenario>(std::move(path), member, std::move(type), std::move(meaning))
      .when("mode", {"router_only"});
}

}  // namespace

std::vector<Field<Scenario>> score_fields() {
  return {
      bind_field<Scenario>(
          "scores.preference", [](auto& s) -> auto& { return s.scores.preference; },
          "Law of the load shares of experts without any bias.")
          .when("mode", {"router_only"}),
      field(
          "scores.sigma", [](auto& s) -> auto& { return s.scores.sigma; },
          NumberType{.at_least = 0.0, .at_most = 10.0}, "Standard deviation of ln(load).")
          .when("scores.preference", {"log_normal"}),
      field(
          "scores.drift_steps", [](auto& s) -> auto& { return s.scores.drift_steps; }, count,
          "Steps until preferences have moved on to new ones; 0 is never.")
          .when("scores.preference", {"log_normal"}),
      field(
          "scores.exponent", [](auto& s) -> auto& { return s.scores.exponent; },
          NumberType{.at_least = 0.0, .at_most = 10.0}, "Exponent of Zipf's law.")
          .when("scores.preference", {"zipf"}),
      field(
          "scores.file", [](auto& s) -> auto& { return s.scores.file; }, TextType{},
          "Recording of routing or loads; its layers in turn give the shares.")
          .when("scores.preference", {"recorded"}),
      field(
          "scores.hot_share", [](auto& s) -> auto& { return s.scores.hot_share; }, below_one,
          "Share of tokens that choose one hot expert of each layer; 0 is none."),
      field(
          "scores.shift", [](auto& s) -> auto& { return s.scores.shift; }, below_one,
          "Domain shift: total variation between the load shares of another domain and these."),
      field(
          "scores.shift_weight", [](auto& s) -> auto& { return s.scores.shift_weight; }, share,
          "Part of the load that is of that other domain."),
      field(
          "scores.rank_skew", [](auto& s) -> auto& { return s.scores.rank_skew; }, below_one,
          "Total variation between the load shares of each other rank and rank 0."),
      field(
          "scores.token_driven", [](auto& s) -> auto& { return s.scores.token_driven; }, share,
          "Probability that a choice depends on the token id alone."),
      field(
          "scores.sequence_memory", [](auto& s) -> auto& { return s.scores.sequence_memory; },
          below_one, "Probability that a choice is that of the token before."),
      field(
          "scores.scale", [](auto& s) -> auto& { return s.scores.scale; },
          NumberType{.at_least = 0.0, .at_most = 1e6},
          "Factor on all logits; large ones leave a bounded bias no say."),
      field(
          "scores.offset", [](auto& s) -> auto& { return s.scores.offset; }, moderate,
          "Added to all logits: a common component, which sigmoid scores saturate under."),
      field(
          "scores.aligned_share", [](auto& s) -> auto& { return s.scores.aligned_share; }, share,
          "Share of tokens that point along the gate of one expert."),
      field(
          "scores.aligned_expert", [](auto& s) -> auto& { return s.scores.aligned_expert; }, count,
          "That expert; below `model.routed_experts`."),
      field(
          "scores.aligned_by", [](auto& s) -> auto& { return s.scores.aligned_by; }, moderate,
          "What aligned tokens have on top of that expert's logit."),
      field(
          "scores.nonfinite_share", [](auto& s) -> auto& { return s.scores.nonfinite_share; },
          share, "Share of tokens whose logits are not numbers."),
  };
}

const std::vector<Field<ScheduleEntry>>& schedule_fields() {
  static const std::vector<Field<ScheduleEntry>> fields = {
      bind_field<ScheduleEntry>(
          "from", [](auto& e) -> auto& { return e.from; }, step, "First step with the new values."),
      bind_field<ScheduleEntry>(
          "over", [](auto& e) -> auto& { return e.over; }, count,
          "Steps over which numbers move evenly to the new values; 0 is at once."),
  };
  return fields;
}

}  // namespace ballast::sim
