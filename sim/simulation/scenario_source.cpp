#include "sim/simulation/scenario_source.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/input_error.h"
#include "sim/tokens/make_source.h"

namespace ballast::sim {
namespace {

constexpr std::size_t most_sources = 1000;

/// Another source from some steps on.
class ScheduledSource : public TokenSource {
 public:
  explicit ScheduledSource(std::unique_ptr<TokenSource> unscheduled)
      : unscheduled_(std::move(unscheduled)) {}

  /// `step` from 1.
  void add(std::size_t step, std::unique_ptr<TokenSource> source) {
    from_[step - 1] = std::move(source);
  }

  std::size_t vocabulary() const override { return unscheduled_->vocabulary(); }
  Sequence sequence(const SequenceKey& key) const override {
    const auto next = from_.upper_bound(key.step);
    if (key.split == Split::evaluation || next == from_.begin()) return unscheduled_->sequence(key);
    return std::prev(next)->second->sequence(key);
  }

 private:
  std::unique_ptr<TokenSource> unscheduled_;
  std::map<std::uint64_t, std::unique_ptr<TokenSource>> from_;  ///< by first step, from 0
};

bool changes_tokens(const Scenario& scenario) {
  return std::ranges::any_of(scenario.schedule, [](const ScheduleEntry& entry) {
    return std::ranges::any_of(entry.set,
                               [](const auto& each) { return each.first.starts_with("tokens."); });
  });
}

}  // namespace

std::unique_ptr<TokenSource> make_source(const Scenario& scenario) {
  auto unscheduled = make_source(scenario.tokens, scenario.seed);
  if (!changes_tokens(scenario)) return unscheduled;
  const auto steps = steps_of_change(scenario);
  if (steps.size() > most_sources) {
    throw InputError({.what = "cannot change the tokens in so many steps",
                      .where = "schedule",
                      .why = "there are " + std::to_string(steps.size()) + " steps of change",
                      .right = "at most " + std::to_string(most_sources)});
  }
  auto source = std::make_unique<ScheduledSource>(std::move(unscheduled));
  for (const std::size_t step : steps) {
    source->add(step, make_source(settings_at(scenario, step).tokens, scenario.seed));
  }
  return source;
}

}  // namespace ballast::sim
