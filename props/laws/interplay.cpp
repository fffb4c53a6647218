#include <algorithm>
#include <cmath>

#include "core/random/distributions.h"
#include "props/laws/check.h"
#include "props/laws/families.h"
#include "props/laws/training_cases.h"

namespace ballast::props {

namespace {

const Forward* training(const Request& request) {
  const auto* const forward = std::get_if<Forward>(&request);
  return forward != nullptr && forward->mode == Mode::train ? forward : nullptr;
}

bool is_step(const Request& request) {
  return std::holds_alternative<Step>(request);
}

bool is_skipped(const Request& request) {
  const auto* const step = std::get_if<Step>(&request);
  return step != nullptr && !step->applied;
}

void discard_unless_known(Check& check, const Case& input) {
  check.discard_unless(std::ranges::all_of(input.history, [](const Request& request) {
    return is_step(request) || std::holds_alternative<Forward>(request);
  }));
}

/// Holds a conversation of forwards and steps; the biases at its end.
BiasRows train(Check& check, const Open& open, const std::vector<Request>& history) {
  check.open(open);
  for (const Request& request : history) {
    if (is_step(request)) {
      check.step(request);
    } else {
      check.route(request);
    }
  }
  return check.biases();
}

void require_same(Check& check, const std::string& place, const std::vector<double>& expected,
                  const std::vector<double>& seen, const std::string& why) {
  if (expected == seen) return;
  check.broken(place, why + ": " + text(expected), text(seen));
}

void require_same(Check& check, const BiasRows& expected, const BiasRows& seen,
                  const std::string& why) {
  for (std::size_t l = 0; l < expected.size(); ++l) {
    require_same(check, "layer " + std::to_string(l), expected[l], seen[l], why);
  }
}

// ---------------------------------------------------------------------------------------------------------
// Steps

void step_answers_biases(Check& check, const Case& input) {
  discard_unless_known(check, input);
  check.open(input.open);
  for (const Request& request : input.history) {
    if (!is_step(request)) {
      check.route(request);
      continue;
    }
    const BiasRows answered = check.step(request);
    require_same(check, answered, check.biases(), "the biases that the step answered");
    check.meet_if(is_skipped(request), "skipped step");
  }
}

void second_step_is_idle(Check& check, const Case& input) {
  discard_unless_known(check, input);
  check.open(input.open);
  for (const Request& request : input.history) {
    if (!is_step(request)) {
      check.route(request);
      continue;
    }
    if (is_skipped(request)) check.discard();  // what it leaves pending is the subject's policy
    const BiasRows once = check.step(request);
    require_same(check, once, check.step(request),
                 "the biases of the step before, without a forward since");
  }
}

void skipped_step_moves_nothing(Check& check, const Case& input) {
  discard_unless_known(check, input);
  check.discard_unless(input.open.balancer.update == Update::step);
  check.open(input.open);
  BiasRows in_force = opening_biases(input.open);
  for (const Request& request : input.history) {
    if (!is_step(request)) {
      check.route(request);
      continue;
    }
    const BiasRows answered = check.step(request);
    if (is_skipped(request)) {
      check.meet("skipped step");
      require_same(check, in_force, answered, "the biases before the skipped step");
    }
    in_force = answered;
  }
}

/// As if the skipped steps, and with `discard` the forwards before them, had never been.
std::vector<Request> without_skipped(const Case& input, OnOverflow policy) {
  std::vector<Request> kept;
  std::size_t step_begin = 0;
  for (const Request& request : input.history) {
    if (is_skipped(request)) {
      if (policy == OnOverflow::discard) kept.resize(step_begin);
      continue;
    }
    kept.push_back(request);
    if (is_step(request)) step_begin = kept.size();
  }
  return kept;
}

void overflow_policy(Check& check, const Case& input) {
  discard_unless_known(check, input);
  check.discard_unless(input.open.balancer.update == Update::step);
  const auto skipped = std::ranges::find_if(input.history, is_skipped);
  const bool pending = std::any_of(input.history.begin(), skipped,
                                   [](const Request& r) { return training(r) != nullptr; });
  const bool applied_later = std::any_of(
      skipped, input.history.end(), [](const Request& r) { return is_step(r) && !is_skipped(r); });
  check.meet_if(skipped != input.history.end() && pending && applied_later,
                "a step after a skipped one with forwards");
  const OnOverflow policy = check.hello().on_overflow;
  const BiasRows expected = train(check, input.open, without_skipped(input, policy));
  const BiasRows seen = train(check, input.open, input.history);
  require_same(
      check, expected, seen,
      policy == OnOverflow::discard
          ? "biases as if the skipped steps' forwards had not been (on_overflow: discard)"
          : "biases as if the skipped steps' forwards were the next step's (on_overflow: keep)");
}

// ---------------------------------------------------------------------------------------------------------
// Intervals

/// A recount of the answers by layer.
class Interval {
 public:
  explicit Interval(const ModelSpec& model)
      : counts_(model.layers, std::vector<std::int64_t>(model.routed_experts)) {}

  void add(const Forward& forward, const Routed& routed) {
    for (std::size_t t = 0; t < routed.indices.size(); ++t) {
      if (!is_valid(forward, t)) continue;
      for (const std::int64_t expert : routed.indices[t]) {
        ++counts_[forward.layer][static_cast<std::size_t>(expert)];
      }
    }
  }
  /// Rows of one sort order: layers are compared without relying on what the subject calls them.
  Counts sorted() const {
    Counts rows = counts_;
    std::ranges::sort(rows);
    return rows;
  }

 private:
  Counts counts_;
};

using props::text;
std::string text(const Counts& counts) {
  std::string out;
  for (const auto& row : counts) {
    if (!out.empty()) out += " | ";
    for (const std::int64_t count : row) out += std::to_string(count) + " ";
  }
  return out;
}

void end_interval(Check& check, Interval& interval) {
  const Snapshot snapshot = check.snapshot();
  Counts seen;
  for (const auto& [name, layer] : snapshot.layers) seen.push_back(layer.expert_load_counts);
  std::ranges::sort(seen);
  if (seen != interval.sorted()) {
    check.broken(
        "", "counts of the choices since the last snapshot, by layer: " + text(interval.sorted()),
        text(seen));
  }
  interval = Interval(check.model());
}

/// Counts over intervals that begin and end anywhere among micro-batches and steps.
void interval_counts(Check& check, const Case& input) {
  discard_unless_known(check, input);
  check.open(input.open);
  check.done(Collector{.action = CollectorAction::enter});
  Stream stream(input.salt);
  Interval interval(check.model());
  for (const Request& request : input.history) {
    if (is_step(request)) {
      check.step(request);
      check.meet_if(is_skipped(request), "skipped step");
    } else {
      const Routed routed = check.route(request);
      if (training(request) != nullptr) interval.add(*training(request), routed);
    }
    if (uniform_index(stream, 4) != 0) continue;
    check.meet_if(!is_step(request), "an interval that ends within a step");
    end_interval(check, interval);
  }
  end_interval(check, interval);
}

/// Reading the load must not take from the balancer what it has yet to learn from.
void reading_disturbs_nothing(Check& check, const Case& input) {
  discard_unless_known(check, input);
  const BiasRows expected = train(check, input.open, input.history);
  check.open(input.open);
  check.done(Collector{.action = CollectorAction::enter});
  for (const Request& request : input.history) {
    if (is_step(request)) {
      check.step(request);
    } else {
      check.route(request);
      check.snapshot();
    }
  }
  require_same(check, expected, check.biases(), "the biases without a collector");
}

// ---------------------------------------------------------------------------------------------------------
// Modes and layers

void require_same_choice(Check& check, const Routed& expected, const Routed& seen) {
  for (std::size_t t = 0; t < expected.indices.size(); ++t) {
    if (expected.indices[t] == seen.indices[t] && expected.weights[t] == seen.weights[t]) continue;
    check.broken("token " + std::to_string(t),
                 "the choice and weights of the same forward in evaluation",
                 "another choice or weight in training");
  }
}

void train_and_eval_agree(Check& check, const Case& input) {
  discard_unless_known(check, input);
  check.open(input.open);
  bool moved = false;
  for (const Request& request : input.history) {
    if (is_step(request)) {
      check.step(request);
      moved = true;
    } else if (const Forward* const forward = training(request)) {
      Forward evaluation = *forward;
      evaluation.mode = Mode::eval;
      const Routed expected = check.route(std::move(evaluation));
      require_same_choice(check, expected, check.route(request));
      check.meet_if(moved, "after a step");
    } else {
      check.route(request);
    }
  }
}

/// A layer's biases come from its own forwards: those of the others are taken away.
void layers_apart(Check& check, const Case& input) {
  discard_unless_known(check, input);
  check.discard_unless(input.open.model.layers > 1);
  const std::size_t layer = input.salt % input.open.model.layers;
  std::vector<Request> of_layer;
  for (const Request& request : input.history) {
    const auto* const forward = std::get_if<Forward>(&request);
    if (forward == nullptr || forward->layer == layer) of_layer.push_back(request);
  }
  check.meet("several layers");
  const BiasRows expected = train(check, input.open, of_layer);
  const BiasRows seen = train(check, input.open, input.history);
  require_same(check, "layer " + std::to_string(layer), expected[layer], seen[layer],
               "biases that come from the layer's own forwards alone");
  const BiasRows at_first = opening_biases(input.open);
  for (std::size_t l = 0; l < expected.size(); ++l) {
    if (l == layer) continue;
    require_same(check, "layer " + std::to_string(l) + ", when it has no forwards", at_first[l],
                 expected[l], "its first biases");
  }
}

// ---------------------------------------------------------------------------------------------------------

std::function<Case(Stream&, std::size_t)> generates(TrainingFeatures features) {
  return [features = std::move(features)](Stream& stream, std::size_t size) {
    return training_case(stream, size, features);
  };
}

std::function<Case(Stream&, std::size_t)> generates_layers(TrainingFeatures features) {
  return [features = std::move(features)](Stream& stream, std::size_t size) {
    for (;;) {
      Case input = training_case(stream, size, features);
      if (input.open.model.layers > 1) return input;
    }
  };
}

const std::vector<BalancerSpec> any{exact_balancer, exact_balancer, histogram_balancer,
                                    histogram_balancer, sign_balancer};

}  // namespace

std::vector<Law> interplay_laws() {
  using enum Capability;
  return {
      {.id = "interplay.step-answer",
       .statement = "A step answers the biases that are in force after it.",
       .source = "M19 M27 M30",
       .needs = {balance},
       .edges = {"skipped step"},
       .generate = generates({.balancers = any,
                              .update_at_forward = true,
                              .evaluations = true,
                              .skipped_steps = true}),
       .check = checked(step_answers_biases)},
      {.id = "interplay.once-per-step",
       .statement = "The forwards of a step move the biases once: a second step without a forward "
                    "changes no "
                    "bit.",
       .source = "M17 M35 M63",
       .needs = {balance},
       .edges = {},
       .generate = generates({.balancers = any, .evaluations = true}),
       .check = checked(second_step_is_idle)},
      {.id = "interplay.skipped-step",
       .statement = "A step that is skipped on overflow changes no bit of the biases.",
       .source = "algorithms.md 1.4, 2.6; protocol: step",
       .needs = {balance},
       .edges = {"skipped step"},
       .generate = generates({.balancers = any, .evaluations = true, .skipped_steps = true}),
       .check = checked(skipped_step_moves_nothing)},
      {.id = "interplay.overflow-policy",
       .statement =
           "What becomes of a skipped step's observations is what the subject declares: discarded, "
           "they leave no trace in the biases; kept, they are the next step's.",
       .source = "algorithms.md 2.6; protocol: on_overflow",
       .needs = {balance},
       .edges = {"a step after a skipped one with forwards"},
       .generate = generates(
           {.balancers = any, .evaluations = true, .skipped_steps = true, .steps_max = 5}),
       .check = checked(overflow_policy)},
      {.id = "interplay.interval-counts",
       .statement = "A collector's counts are those of the training forwards since the last "
                    "snapshot, whatever "
                    "steps, applied or skipped, lie between.",
       .source = "protocol: step, collector; M37 M57",
       .needs = {balance, collect},
       .edges = {"skipped step", "an interval that ends within a step"},
       .generate = generates({.balancers = any,
                              .update_at_forward = true,
                              .evaluations = true,
                              .skipped_steps = true,
                              .empty_forwards = true,
                              .steps_max = 4}),
       .check = checked(interval_counts)},
      {.id = "interplay.reading-loads",
       .statement =
           "Counting and reading loads between micro-batches changes no bit of the biases.",
       .source = "M37 M63",
       .needs = {balance, collect},
       .edges = {},
       .generate = generates({.balancers = any, .update_at_forward = true, .skipped_steps = true}),
       .check = checked(reading_disturbs_nothing)},
      {.id = "interplay.train-eval",
       .statement = "Training and evaluation choose and weigh alike on equal biases.",
       .source = "algorithms.md 2.6, 2.9; M06 M141 M145",
       .needs = {balance},
       .edges = {"after a step"},
       .generate = generates({.balancers = any, .update_at_forward = true}),
       .check = checked(train_and_eval_agree)},
      {.id = "interplay.layers-apart",
       .statement = "A layer's biases come from that layer's forwards alone.",
       .source = "M40 M57 M100",
       .needs = {balance},
       .edges = {"several layers"},
       .generate =
           generates_layers({.balancers = any, .update_at_forward = true, .evaluations = true}),
       .check = checked(layers_apart)},
  };
}

}  // namespace ballast::props
