#include "sim/shrink/reductions.h"

#include <algorithm>
#include <cmath>

#include "sim/scenario/contradictions.h"
#include "sim/scenario/fields.h"
#include "sim/scenario/givens.h"

namespace ballast::sim {
namespace {

constexpr const char* steps_path = "training.steps";

const std::vector<SizeField>& all_sizes() {
  static const std::vector<SizeField> sizes = {
      {steps_path, 1},
      {"model.layers", 1},
      {"training.ranks", 1},
      {"training.micro_batches", 1},
      {"training.sequences", 1},
      {"tokens.sequence_length", 1},
      {"model.routed_experts", 1},
      {"model.top_k", 1},
      {"model.shared_experts", 0},
      {"model.hidden", 4},  // normalised, fewer numbers leave hardly any two tokens apart
      {"model.latent", 1},
      {"model.expert_inner", 1},
      {"model.shared_inner", 1},
      {"tokens.vocabulary", 1},
      {"tokens.topics", 1},
      {"training.evaluate_sequences", 1},
      {"balancer.bins", 2},
  };
  return sizes;
}

/// A field that has no effect while another one has one of these values.
struct Idle {
  std::string path, by;
  std::vector<Json> values;
};

const std::vector<Idle>& all_idle() {
  static const std::vector<Idle> all = {
      {"balancer.update", "balancer.kind", {"none"}},
      {"balancer.on_skipped_step", "balancer.kind", {"none"}},
      {"balancer.estimator", "balancer.kind", {"none"}},
      {"balancer.bins", "balancer.kind", {"none"}},
      {"balancer.bins",
       "balancer.estimator",
       {"exact", "microbatch_mean", "chunk_mean", "sequence_mean"}},
      {"balancer.ema", "balancer.kind", {"none"}},
      {"balancer.gain", "balancer.kind", {"none"}},
      {"balancer.stale_updates", "balancer.kind", {"none"}},
      {"balancer.counted", "balancer.drop", {"none"}},
      {"model.shared_inner", "model.shared_experts", {0}},
      {"model.groups.chosen", "model.groups.count", {1}},
      {"model.groups.score", "model.groups.count", {1}},
      {"tokens.topic_persistence", "tokens.topics", {1}},
      {"tokens.burst_length", "tokens.burst_share", {0.0}},
      {"scores.shift_weight", "scores.shift", {0.0}},
      {"scores.aligned_expert", "scores.aligned_share", {0.0}},
      {"scores.aligned_by", "scores.aligned_share", {0.0}},
      {"training.evaluate_sequences", "training.evaluate_every", {0}},
      {"training.checkpoint_every", "training.restart_after", {Json::array()}},
      {"training.log_every", "diagnostics", {false}},
  };
  return all;
}

const Field<Scenario>& field_of(const std::string& path) {
  return *find_field(scenario_fields(), path);
}

/// Whether the field means something beside the others.
bool is_in_force(const Scenario& scenario, const Field<Scenario>& field) {
  const Givens words = all_words(scenario_fields(), scenario);
  return broken_condition(scenario_fields(), field, words) == nullptr;
}

bool is_scheduled(const Scenario& scenario, const std::string& path) {
  return std::ranges::any_of(scenario.schedule,
                             [&](const ScheduleEntry& entry) { return entry.set.contains(path); });
}

bool is_idle(const Scenario& scenario, const std::string& path) {
  return std::ranges::any_of(all_idle(), [&](const Idle& idle) {
    if (idle.path != path || is_scheduled(scenario, idle.by)) return false;
    return std::ranges::find(idle.values, field_of(idle.by).get(scenario)) != idle.values.end();
  });
}

/// Whether a change of the field can change the run.
bool has_effect(const Scenario& scenario, const Field<Scenario>& field) {
  return is_in_force(scenario, field) && !is_idle(scenario, field.path);
}

Scenario with_value(Scenario scenario, const std::string& path, const Json& value) {
  field_of(path).assign(scenario, value);
  return scenario;
}

/// A step of a run of `before` steps in one of `after` steps: in proportion, at least 1.
std::size_t moved(std::size_t step, std::size_t before, std::size_t after) {
  const double share = static_cast<double>(step) / static_cast<double>(before);
  const auto there = static_cast<std::size_t>(std::ceil(share * static_cast<double>(after)));
  return std::max<std::size_t>(1, there);
}

void move_all(std::vector<std::size_t>& steps, std::size_t before, std::size_t after) {
  for (std::size_t& step : steps) step = moved(step, before, after);
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
}

Scenario with_steps(Scenario scenario, std::size_t steps) {
  TrainingSettings& training = scenario.training;
  const std::size_t before = training.steps;
  training.steps = steps;
  move_all(training.overflow_steps, before, steps);
  move_all(training.restart_after, before, steps);
  for (std::size_t* every : {&training.evaluate_every, &training.checkpoint_every}) {
    if (*every > 0) *every = moved(*every, before, steps);
  }
  for (Expectation& expectation : scenario.expect) {
    if (expectation.from > 1) {
      expectation.from = std::max<std::size_t>(2, moved(expectation.from, before, steps));
    }
    if (expectation.until) expectation.until = moved(*expectation.until, before, steps);
  }
  return scenario;
}

double fair_load(const Scenario& s) {
  double load = static_cast<double>(s.model.moe.router.top_k) /
                static_cast<double>(s.model.moe.router.routed_experts);
  for (const std::size_t factor : {s.training.ranks, s.training.micro_batches, s.training.sequences,
                                   s.tokens.sequence_length}) {
    load *= static_cast<double>(factor);
  }
  return load;
}

/// Every list with one entry less.
std::vector<Json> lists_without_one(const Json& list) {
  std::vector<Json> all;
  for (std::size_t i = 0; list.size() > 1 && i < list.size(); ++i) {
    Json shorter = list;
    shorter.erase(i);
    all.push_back(std::move(shorter));
  }
  return all;
}

bool is_heading(const std::string& path) {
  return path == "name" || path == "description" || path == "seed";
}

/// What balances is part of why a scenario fails: another balancer that fails as well is another
/// case.
bool is_cause(const std::string& path) {
  return path == "balancer.kind" || path == "balancer.estimator";
}

/// Whether tokens still differ enough to tell experts apart. Where they are all alike any router
/// sends them to the same experts, whatever balances them.
bool has_varied_tokens(const Scenario& smaller, const Scenario& original) {
  const std::size_t wanted = 2 * smaller.model.moe.router.routed_experts;
  return smaller.tokens.vocabulary >= std::min(wanted, original.tokens.vocabulary);
}

bool is_size(const std::string& path) {
  return std::ranges::find(all_sizes(), path, &SizeField::path) != all_sizes().end();
}

}  // namespace

std::vector<SizeField> size_fields(const Scenario& scenario) {
  std::vector<SizeField> sizes;
  for (const SizeField& size : all_sizes()) {
    if (has_effect(scenario, field_of(size.path))) sizes.push_back(size);
  }
  return sizes;
}

std::uint64_t size_of(const Scenario& scenario, const SizeField& field) {
  return field_of(field.path).get(scenario).get<std::uint64_t>();
}

Scenario with_size(const Scenario& scenario, const SizeField& field, std::uint64_t size) {
  if (field.path == steps_path) return with_steps(scenario, static_cast<std::size_t>(size));
  return with_value(scenario, field.path, Json(size));
}

std::vector<Simplification> simplifications(const Scenario& scenario) {
  std::vector<Simplification> all;
  const auto add = [&](const std::string& path, const Json& from, const Json& to) {
    all.push_back({path, from, to, with_value(scenario, path, to)});
  };
  for (const auto& field : scenario_fields()) {
    if (is_heading(field.path) || is_cause(field.path) || is_size(field.path) ||
        !has_effect(scenario, field))
      continue;
    const Json now = field.get(scenario), simplest = field.get(Scenario{});
    if (now == simplest || simplest.is_null() || problem(simplest, field.type)) continue;
    add(field.path, now, simplest);
    if (!std::holds_alternative<StepsType>(field.type)) continue;
    for (const Json& shorter : lists_without_one(now)) add(field.path, now, shorter);
  }
  return all;
}

Scenario without_idle_fields(const Scenario& scenario) {
  Scenario settled = scenario;
  for (const auto& field : scenario_fields()) {
    if (!is_idle(scenario, field.path) || is_scheduled(scenario, field.path)) continue;
    const Json initial = field.get(Scenario{});
    if (!initial.is_null()) field.assign(settled, initial);
  }
  return settled;
}

bool is_sound(const Scenario& smaller, const Scenario& original) {
  if (fair_load(smaller) < std::min(8.0, fair_load(original))) return false;
  if (!has_varied_tokens(smaller, original)) return false;
  if (contradiction_in(smaller)) return false;
  return std::ranges::all_of(smaller.expect, [&](const Expectation& expectation) {
    return !contradiction_in(expectation, smaller) && expectation.from <= smaller.training.steps;
  });
}

}  // namespace ballast::sim
