#include "sim/scenario/schedule.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "sim/scenario/fields.h"

namespace ballast::sim {
namespace {

constexpr std::array<std::string_view, 11> others = {"training.optimizer.learning_rate",
                                                     "tokens.padding",
                                                     "tokens.sigma",
                                                     "tokens.exponent",
                                                     "tokens.shift",
                                                     "tokens.rank_skew",
                                                     "tokens.burst_share",
                                                     "tokens.burst_length",
                                                     "tokens.repeat_period",
                                                     "tokens.topic_persistence",
                                                     "tokens.token"};

/// The value on the way from one to the other, `way` in (0, 1].
Json between(const Json& from, const Json& to, double way, const FieldType& type) {
  if (way >= 1.0 || !std::holds_alternative<NumberType>(type)) return to;
  const double a = from.get<double>(), b = to.get<double>();
  return a + way * (b - a);
}

void apply(const ScheduleEntry& entry, std::size_t step, Scenario& scenario) {
  if (step < entry.from) return;
  const double way =
      static_cast<double>(step - entry.from + 1) / static_cast<double>(entry.over + 1);
  for (const auto& [path, text] : entry.set) {
    const auto& field = *find_field(scenario_fields(), path);
    field.assign(scenario, between(field.get(scenario), Json::parse(text), way, field.type));
  }
}

}  // namespace

bool may_be_scheduled(const std::string& path) {
  return path.starts_with("scores.") || std::ranges::find(others, path) != others.end();
}

Scenario settings_at(const Scenario& scenario, std::size_t step) {
  Scenario out = scenario;
  for (const ScheduleEntry& entry : scenario.schedule) apply(entry, step, out);
  return out;
}

std::vector<std::size_t> steps_of_change(const Scenario& scenario) {
  std::set<std::size_t> steps;
  for (const ScheduleEntry& entry : scenario.schedule) {
    const std::size_t last = std::min(entry.from + entry.over, scenario.training.steps);
    for (std::size_t step = entry.from; step <= last; ++step) steps.insert(step);
  }
  return {steps.begin(), steps.end()};
}

}  // namespace ballast::sim
