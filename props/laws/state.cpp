#include <algorithm>

#include "props/cases/generate.h"
#include "props/laws/families.h"
#include "props/laws/support.h"

// Saving and loading: what was saved is the state that later behaviour depends on, every layer and
// every bit of it, and nothing of a collector; and opening drops all of it.
namespace ballast::props {

namespace {

using enum Capability;

Case any_history(Stream& stream, std::size_t size) {
  return generate_case(stream, size, {});
}

Case without_collector(Stream& stream, std::size_t size) {
  return generate_case(stream, size, {.collector = false});
}

/// Layers whose biases use all bits.
Case biases_only(Stream& stream, std::size_t size) {
  Case out;
  out.open.model = generate_model(stream, size);
  out.open.balancer = generate_balancer(stream, out.open.model);
  out.open.biases = generate_open_biases(stream, out.open.model);
  const std::size_t sets = between(stream, 1, 3);
  for (std::size_t i = 0; i < sets; ++i) {
    SetBiases request;
    for (std::size_t l = 0; l < out.open.model.layers; ++l) {
      request.biases.push_back(
          generate_biases(stream, out.open.model.routed_experts,
                          one_in(stream, 2) ? BiasFamily::smooth : bias_family(stream)));
    }
    out.history.push_back(std::move(request));
  }
  out.salt = stream();
  return out;
}

/// A training step under way: forwards on the grid, none of them closed.
Case in_mid_step(Stream& stream, std::size_t size) {
  Case out =
      generate_case(stream, size, {.skipped_steps = false, .collector = false, .save_load = false});
  out.open.balancer.update = Update::step;
  if (out.open.model.top_k == out.open.model.routed_experts) {
    out.open.balancer.kind = BalancerKind::none;
  }
  return out;
}

/// The history with a save before request `at`, the disturbance, and a load of that save. Later
/// saves and loads are numbered on.
Spliced with_save_and_load(const History& history, std::size_t at, const History& disturbance) {
  const auto saves = static_cast<std::size_t>(
      std::count_if(history.begin(), history.begin() + static_cast<std::ptrdiff_t>(at),
                    [](const Request& r) { return std::holds_alternative<Save>(r); }));
  History later = history;
  for (std::size_t i = at; i < later.size(); ++i) {
    if (auto* load = std::get_if<Load>(&later[i]); load != nullptr && load->slot >= saves) {
      ++load->slot;
    }
  }
  std::vector<std::pair<std::size_t, Request>> insertions = {{at, Save{}}};
  for (const Request& request : disturbance) insertions.emplace_back(at, request);
  insertions.emplace_back(at, Load{saves});
  return splice(later, insertions);
}

/// A place where no observation is pending, or where one is. Discards when there is none.
std::size_t some_place(Stream& stream, const History& history, bool pending) {
  const auto forwards = pending_forwards(history);
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < forwards.size(); ++i) {
    if ((forwards[i] > 0) == pending) places.push_back(i);
  }
  if (places.empty()) discard();
  return pick(stream, std::span<const std::size_t>(places));
}

void check_no_op(Subject& subject, const Case& input, Edges& edges) {
  note_edges(input, edges);
  Stream stream(input.salt);
  const History history = with_end_shown(input.history, subject.hello().supports);
  const std::size_t at = some_place(stream, input.history, false);
  if (at > 0) edges.insert("saved after the opening");
  const auto expected = converse(subject, input.open, history);
  const Spliced spliced = with_save_and_load(history, at, {});
  const auto answers = converse(subject, input.open, spliced.history);
  for (std::size_t i = 0; i < history.size(); ++i) {
    expect_same(history, i, expected[i], answers[spliced.position[i]],
                "with a save and its load before request " + std::to_string(at));
  }
}

/// What changes a model's state and ends on a step.
History disturbance(Stream& stream, const Open& open) {
  SetBiases set;
  for (std::size_t l = 0; l < open.model.layers; ++l) {
    set.biases.push_back(generate_biases(stream, open.model.routed_experts, BiasFamily::grid));
  }
  History out = {std::move(set)};
  for (std::size_t l = 0; l < open.model.layers; ++l) {
    out.push_back(Forward{
        .layer = l,
        .logits = generate_logits(stream, 3, open.model.routed_experts, LogitFamily::smooth),
        .mask = {}});
  }
  out.push_back(Step{true});
  return out;
}

void check_restore(Subject& subject, const Case& input, Edges& edges) {
  note_edges(input, edges);
  for (const Request& request : input.history) {
    if (std::holds_alternative<Collector>(request)) discard();
  }
  Stream stream(input.salt);
  History history = with_end_shown(input.history, subject.hello().supports);
  const std::size_t at = some_place(stream, input.history, false);
  history.insert(history.begin() + static_cast<std::ptrdiff_t>(at), GetBiases{});
  const auto expected = converse(subject, input.open, history);
  const Spliced spliced = with_save_and_load(history, at, disturbance(stream, input.open));
  const auto answers = converse(subject, input.open, spliced.history);
  for (std::size_t i = 0; i < history.size(); ++i) {
    expect_same(history, i, expected[i], answers[spliced.position[i]],
                "when a state saved before request " + std::to_string(at) +
                    " is loaded again after another step");
  }
}

void check_every_bit(Subject& subject, const Case& input, Edges& edges) {
  note_edges(input, edges);
  History history;
  std::vector<std::size_t> told;  // where the biases before each save are told
  for (const Request& request : input.history) {
    if (!std::holds_alternative<SetBiases>(request)) discard();
    history.push_back(request);
    told.push_back(history.size());
    history.push_back(GetBiases{});
    history.push_back(Save{});
  }
  if (told.empty()) discard();
  const SetBiases other{
      Biases(input.open.model.layers, std::vector<float>(input.open.model.routed_experts, 0.5f))};
  std::vector<std::pair<std::size_t, std::size_t>> restored;  // told, told again
  Stream stream(input.salt);
  for (int round = 0; round < 2; ++round) {  // a load may not make the saved state the live one
    for (const std::size_t slot : permutation(stream, told.size())) {
      history.insert(history.end(), {other, Step{true}, Load{slot}});
      restored.emplace_back(told[slot], history.size());
      history.push_back(GetBiases{});
    }
  }
  const auto answers = converse(subject, input.open, history);
  for (const auto& [before, after] : restored) {
    expect_same(history, after, answers[before], answers[after],
                "after the load of what was saved then");
  }
}

void check_set_biases(Subject& subject, const Case& input, Edges& edges) {
  note_edges(input, edges);
  History history = {GetBiases{}};
  std::vector<std::vector<std::vector<double>>> set = {opening_biases(input.open)};
  for (const Request& request : input.history) {
    const auto* biases = std::get_if<SetBiases>(&request);
    if (biases == nullptr) discard();
    history.push_back(request);
    history.push_back(GetBiases{});
    set.emplace_back();
    for (const auto& row : biases->biases) set.back().emplace_back(row.begin(), row.end());
  }
  const auto answers = converse(subject, input.open, history);
  for (std::size_t i = 0; i < set.size(); ++i) {
    expect_same(history, 2 * i, BiasesAnswer{set[i]}, answers[2 * i], "when told again");
  }
}

/// The pending training forwards before `at` as evaluations: the same answers, nothing observed.
History unobserved(History history, std::size_t at) {
  for (std::size_t i = at; i > 0; --i) {
    if (const auto* step = std::get_if<Step>(&history[i - 1]); step != nullptr && step->applied) {
      break;
    }
    if (auto* forward = std::get_if<Forward>(&history[i - 1])) forward->mode = Mode::eval;
  }
  return history;
}

void check_mid_step(Subject& subject, const Case& input, Edges& edges) {
  note_edges(input, edges);
  if (input.open.balancer.update != Update::step) discard();
  for (const Request& request : input.history) {
    if (std::holds_alternative<Collector>(request)) discard();
    if (std::holds_alternative<Save>(request) || std::holds_alternative<Load>(request)) discard();
    const auto* step = std::get_if<Step>(&request);
    if (step != nullptr && !step->applied) discard();
  }
  Stream stream(input.salt);
  const History history = with_end_shown(input.history, subject.hello().supports);
  const std::size_t at = some_place(stream, input.history, true);
  const auto kept = converse(subject, input.open, history);
  const auto dropped = converse(subject, input.open, unobserved(history, at));
  const Spliced spliced = with_save_and_load(history, at, {});
  std::vector<Answer> answers;
  subject.open(input.open);
  for (const Request& request : spliced.history) {
    answers.push_back(subject.ask(request));
    const bool of_state =
        std::holds_alternative<Save>(request) || std::holds_alternative<Load>(request);
    if (of_state && std::holds_alternative<Refusal>(answers.back())) discard();
  }
  for (std::size_t i = at; i < history.size(); ++i) {
    const auto* biases = std::get_if<BiasesAnswer>(&answers[spliced.position[i]]);
    if (biases == nullptr || !std::holds_alternative<Step>(history[i])) continue;
    edges.insert("saved in mid-step");
    if (biases->biases == biases_of(kept[i]) || biases->biases == biases_of(dropped[i])) return;
    expect_same(history, i, kept[i], answers[spliced.position[i]],
                "with a save and its load before request " + std::to_string(at) +
                    ", neither as without them nor as if the forwards before had not been");
  }
}

void check_opens_anew(Subject& subject, const Case& input, Edges& edges) {
  note_edges(input, edges);
  const History history = with_end_shown(input.history, subject.hello().supports);
  const auto expected = converse(subject, input.open, history);
  // The conversation before leaves biases, pending observations and an active collector.
  Stream stream(input.salt);
  History before;
  if (subject.hello().supports.contains(collect)) {
    before.push_back(Collector{CollectorAction::enter, true});
  }
  for (Request& request : disturbance(stream, input.open)) before.push_back(std::move(request));
  std::swap(before.back(), before[before.size() - 2]);  // a forward after the step stays pending
  converse(subject, input.open, before);
  const auto seen = converse(subject, input.open, history);
  for (std::size_t i = 0; i < history.size(); ++i) {
    expect_same(history, i, expected[i], seen[i], "when opened after another conversation");
  }
}

}  // namespace

std::vector<Law> state_laws() {
  return {
      {.id = "state.no-op",
       .statement = "Saving and loading between two steps changes nothing that comes later, and "
                    "nothing that a collector counted.",
       .source = "M10 M19 M20 M27 M28 M30 M60",
       .needs = {route, balance, state},
       .edges = {"saved after the opening", "several layers"},
       .generate = any_history,
       .check = judged(check_no_op)},
      {.id = "state.restore",
       .statement = "A state loaded after other steps brings back all of what was saved: later "
                    "choices, weights and biases are those of a run without interruption.",
       .source = "M10 M19 M20 M30",
       .needs = {route, balance, state},
       .edges = {"several layers"},
       .generate = without_collector,
       .check = judged(check_restore)},
      {.id = "state.every-bit",
       .statement = "Each load restores the biases of all layers to the bit, whichever of several "
                    "saves it is of.",
       .source = "algorithms.md 6 (dtype); M19 M20 M28 M30",
       .needs = {balance, state},
       .edges = {"several layers"},
       .generate = biases_only,
       .check = judged(check_every_bit)},
      {.id = "state.set-biases",
       .statement = "Biases that are set, or opened with, are told again to the bit.",
       .source = "algorithms.md 6 (dtype); M24 M27 M73 M74",
       .needs = {balance},
       .edges = {"several layers"},
       .generate = biases_only,
       .check = judged(check_set_biases)},
      {.id = "state.mid-step",
       .statement = "Saving and loading in the middle of a step keeps all pending observations or "
                    "drops all of them.",
       .source = "M10",
       .needs = {route, balance, state},
       .edges = {"saved in mid-step"},
       .generate = in_mid_step,
       .check = judged(check_mid_step)},
      {.id = "state.opens-anew",
       .statement =
           "Opening drops all earlier state: biases, pending observations, a collector and "
           "its counts.",
       .source = "protocol; M60 M63 M139",
       .needs = {route, balance},
       .edges = {},
       .generate = any_history,
       .check = judged(check_opens_anew)},
  };
}

}  // namespace ballast::props
