#include "sim/sweep/sweep_fields.h"

namespace ballast::sim {

const std::vector<Field<SweepSettings>>& sweep_fields() {
  static const std::vector<Field<SweepSettings>> fields = {
      bind_field<SweepSettings>(
          "name", [](auto& s) -> auto& { return s.name; }, TextType{TextForm::not_empty},
          "What the sweep is called."),
      bind_field<SweepSettings>(
          "description", [](auto& s) -> auto& { return s.description; }, TextType{},
          "What it asks."),
      bind_field<SweepSettings>(
          "mode", [](auto& s) -> auto& { return s.mode; },
          "How the values of the axes make points."),
      bind_field<SweepSettings>(
          "budget", [](auto& s) -> auto& { return s.budget; },
          IntegerType{.at_least = 1, .at_most = most_points}, "Points that are drawn.")
          .when("mode", {"random"}),
      bind_field<SweepSettings>(
          "sampling_seed", [](auto& s) -> auto& { return s.sampling_seed; }, IntegerType{},
          "What the points are drawn from.")
          .when("mode", {"random"}),
      bind_field<SweepSettings>(
          "seeds", [](auto& s) -> auto& { return s.seeds; },
          IntegerType{.at_least = 1, .at_most = 10'000},
          "Runs of each point, with the seeds base.seed, base.seed + 1, ..."),
  };
  return fields;
}

const std::vector<Field<AxisHeading>>& heading_fields() {
  static const std::vector<Field<AxisHeading>> fields = {
      bind_field<AxisHeading>(
          "name", [](auto& h) -> auto& { return h.name; }, TextType{TextForm::not_empty},
          "What its column is called."),
      bind_field<AxisHeading>(
          "field", [](auto& h) -> auto& { return h.field; }, TextType{TextForm::not_empty},
          "The path of the field it sets."),
  };
  return fields;
}

const std::vector<Field<AxisRange>>& range_fields() {
  static const std::vector<Field<AxisRange>> fields = {
      bind_field<AxisRange>(
          "from", [](auto& r) -> auto& { return r.from; }, NumberType{}, "The first value."),
      bind_field<AxisRange>(
          "to", [](auto& r) -> auto& { return r.to; }, NumberType{}, "The last value."),
      bind_field<AxisRange>(
          "points", [](auto& r) -> auto& { return r.points; },
          IntegerType{.at_least = 2, .at_most = most_points}, "How many values there are."),
      bind_field<AxisRange>(
          "step", [](auto& r) -> auto& { return r.step; }, NumberType{.above = 0.0},
          "From one value to the next."),
  };
  return fields;
}

const std::vector<Field<AxisGroup>>& group_fields() {
  static const std::vector<Field<AxisGroup>> fields = {bind_field<AxisGroup>(
      "label", [](auto& g) -> auto& { return g.label; }, TextType{TextForm::not_empty},
      "What the value is called.")};
  return fields;
}

}  // namespace ballast::sim
