#include <algorithm>
#include <numeric>

#include "props/cases/generate.h"
#include "props/laws/families.h"
#include "props/laws/support.h"

// The life of a collector: it changes nothing of the model, is entered once at a time, counts from
// zero whenever it is entered or read, and leaves nothing behind.
namespace ballast::props {

namespace {

using enum Capability;

bool is_collector(const Request& request) {
  return std::holds_alternative<Collector>(request);
}

bool is_snapshot(const Request& request) {
  const auto* collector = std::get_if<Collector>(&request);
  return collector != nullptr && collector->action == CollectorAction::snapshot;
}

/// A history in which a collector is active at some time.
Case with_collector(Stream& stream, std::size_t size) {
  Case out = generate_case(stream, size, {});
  if (std::ranges::any_of(out.history, is_collector)) return out;
  out.history.insert(out.history.begin(), Collector{CollectorAction::enter, true});
  out.history.push_back(Collector{CollectorAction::snapshot, true});
  return out;
}

Case without_collector(Stream& stream, std::size_t size) {
  return generate_case(stream, size, {.collector = false});
}

History stripped(const History& history) {
  History out;
  std::ranges::remove_copy_if(history, std::back_inserter(out), is_collector);
  return out;
}

void need_enabled(const History& history) {
  for (const Request& request : history) {
    const auto* collector = std::get_if<Collector>(&request);
    if (collector != nullptr && !collector->enabled) discard();
  }
}

/// All but the collector's requests are answered as in the stripped history.
void expect_transparent(const History& history, const std::vector<Answer>& answers,
                        const std::vector<Answer>& without, const std::string& context) {
  std::size_t other = 0;
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (is_collector(history[i])) continue;
    expect_same(history, i, without[other++], answers[i], context);
  }
}

void check_transparent(Subject& subject, const Case& input, Edges& edges) {
  note_edges(input, edges);
  if (!std::ranges::any_of(input.history, is_collector)) discard();
  History history = input.history;
  history.push_back(Step{true});
  const auto answers = converse(subject, input.open, history);
  const auto without = converse(subject, input.open, stripped(history));
  expect_transparent(history, answers, without, "with a collector");
}

void check_already_active(Subject& subject, const Case& input, Edges& edges) {
  note_edges(input, edges);
  need_enabled(input.history);
  const History history = with_end_shown(input.history, {balance});
  const auto active = collector_active(history);
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (active[i]) places.push_back(i);
  }
  if (places.empty()) discard();
  Stream stream(input.salt);
  const std::size_t at = pick(stream, std::span<const std::size_t>(places));
  const auto expected = converse(subject, input.open, history);
  subject.open(input.open);
  const std::string context = "after a second entry before request " + std::to_string(at);
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (i == at) {
      const Answer answer = subject.ask(Collector{CollectorAction::enter, true});
      const auto* refusal = std::get_if<Refusal>(&answer);
      if (refusal == nullptr || refusal->code != "already_active") {
        break_law("a second entry before " + place(history, i), "refused as already_active",
                  refusal == nullptr ? "accepted" : "refused as " + refusal->code);
      }
    }
    expect_same(history, i, expected[i], subject.ask(history[i]), context);
  }
}

void check_disabled(Subject& subject, const Case& input, Edges& edges) {
  note_edges(input, edges);
  History history = input.history;
  for (Request& request : history) {
    if (auto* collector = std::get_if<Collector>(&request)) collector->enabled = false;
  }
  const auto answers = converse(subject, input.open, history);
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (!is_snapshot(history[i])) continue;
    edges.insert("disabled snapshot");
    const auto records = records_of(answers[i]).size();
    if (records == 0) continue;
    break_law(place(history, i), "no layers, for the collector was entered disabled",
              std::to_string(records) + " layers");
  }
  const auto without = converse(subject, input.open, stripped(history));
  expect_transparent(history, answers, without, "with a disabled collector");
}

History counted(const History& history) {
  History out = {Collector{CollectorAction::enter, true}};
  out.insert(out.end(), history.begin(), history.end());
  out.push_back(Collector{CollectorAction::snapshot, true});
  return out;
}

void check_re_entry(Subject& subject, const Case& input, Edges& edges) {
  note_edges(input, edges);
  if (std::ranges::any_of(input.history, is_collector)) discard();
  Stream stream(input.salt);
  const History once = counted(input.history);
  History often;
  const std::size_t times = between(stream, 1, 3);
  for (std::size_t i = 0; i < times; ++i) {
    often.push_back(Collector{CollectorAction::enter, true});
    if (one_in(stream, 2)) often.push_back(Collector{CollectorAction::snapshot, true});
    often.push_back(Collector{CollectorAction::exit, true});
  }
  const std::size_t before = often.size();
  often.insert(often.end(), once.begin(), once.end());
  const auto expected = converse(subject, input.open, once);
  const auto seen = converse(subject, input.open, often);
  for (std::size_t i = 0; i < once.size(); ++i) {
    expect_same(often, before + i, expected[i], seen[before + i],
                "when a collector was entered and left " + std::to_string(times) + " times before");
  }
}

void check_forgets(Subject& subject, const Case& input, Edges& edges) {
  note_edges(input, edges);
  if (std::ranges::any_of(input.history, is_collector)) discard();
  // What one collector counted before it was left, the next one does not know.
  History history = counted(input.history);
  const bool was_read = (input.salt & 1) != 0;
  if (!was_read) history.pop_back();
  history.push_back(Collector{CollectorAction::exit, true});
  history.insert(history.end(), {Collector{CollectorAction::enter, true}, Collector{}});
  const auto answers = converse(subject, input.open, history);
  for (const LayerSnapshot* record : records_of(answers.back())) {
    if (std::ranges::all_of(record->expert_load_counts, [](auto n) { return n == 0; })) continue;
    break_law(place(history, history.size() - 1), "counts of zero, for it was just entered",
              "counts " + text(record->expert_load_counts));
  }
}

void check_reset(Subject& subject, const Case& input, Edges& edges) {
  note_edges(input, edges);
  need_enabled(input.history);
  const History history = with_end_shown(input.history, {balance});
  std::vector<std::pair<std::size_t, Request>> again;
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (is_snapshot(history[i])) again.emplace_back(i + 1, Collector{});
  }
  if (again.empty()) discard();
  const auto expected = converse(subject, input.open, history);
  const Spliced spliced = splice(history, again);
  const auto answers = converse(subject, input.open, spliced.history);
  for (std::size_t i = 0; i < history.size(); ++i) {
    const std::size_t at = spliced.position[i];
    expect_same(history, i, expected[i], answers[at], "when every snapshot is read twice");
    if (!is_snapshot(history[i])) continue;
    Snapshot empty = std::get<Snapshot>(answers[at]);
    for (auto& [name, record] : empty.layers) {
      std::ranges::fill(record.expert_load_counts, 0);
      const auto& second = std::get<Snapshot>(answers[at + 1]).layers;
      const auto found = second.find(name);
      const bool reset = found != second.end() && found->second.tokens == 0 &&
                         found->second.expert_load_counts == record.expert_load_counts;
      if (!reset) {
        break_law("a second snapshot after " + place(history, i),
                  "in layer " + name + ": no tokens, counts of zero",
                  found == second.end() ? "no such layer"
                                        : "counts " + text(found->second.expert_load_counts));
      }
      if (found->second.biases == record.biases) continue;
      break_law("a second snapshot after " + place(history, i),
                "in layer " + name + ": the same biases", "others");
    }
  }
}

void check_layers(Subject& subject, const Case& input, Edges& edges) {
  note_edges(input, edges);
  need_enabled(input.history);
  const History history = with_end_shown(input.history, {balance});
  const auto answers = converse(subject, input.open, history);
  const Snapshot* first = nullptr;
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (!is_snapshot(history[i])) continue;
    const auto& snapshot = std::get<Snapshot>(answers[i]);
    if (first == nullptr) first = &snapshot;
    if (snapshot.layers.size() != input.open.model.layers) {
      break_law(place(history, i),
                "a record of each of " + std::to_string(input.open.model.layers) + " layers",
                std::to_string(snapshot.layers.size()) + " records");
    }
    for (const auto& [name, record] : snapshot.layers) {
      if (!first->layers.contains(name)) {
        break_law(place(history, i), "the layer names of the first snapshot",
                  "a layer named " + name);
      }
      if (std::ranges::all_of(record.expert_load_counts, [](auto n) { return n >= 0; })) continue;
      break_law(place(history, i), "counts that are not negative",
                "in layer " + name + ": counts " + text(record.expert_load_counts));
    }
  }
  if (first == nullptr) discard();
}

}  // namespace

std::vector<Law> collector_laws() {
  return {
      {.id = "collector.transparent",
       .statement = "Choices, weights and biases are the same to the bit with and without a "
                    "collector.",
       .source = "M37 M43 M60 M61",
       .needs = {route, balance, collect},
       .edges = {},
       .generate = with_collector,
       .check = judged(check_transparent)},
      {.id = "collector.already-active",
       .statement = "Entering a collector while one is active is refused as already_active and "
                    "changes nothing.",
       .source = "protocol; M35 M148",
       .needs = {route, balance, collect},
       .edges = {},
       .generate = with_collector,
       .check = judged(check_already_active)},
      {.id = "collector.disabled",
       .statement = "A collector that was entered disabled reports no layers and changes nothing.",
       .source = "protocol; M61",
       .needs = {route, balance, collect},
       .edges = {"disabled snapshot"},
       .generate = with_collector,
       .check = judged(check_disabled)},
      {.id = "collector.re-entry",
       .statement = "However often a collector was entered and left before, it counts each choice "
                    "once.",
       .source = "M35 M148",
       .needs = {route, balance, collect},
       .edges = {"several layers"},
       .generate = without_collector,
       .check = judged(check_re_entry)},
      {.id = "collector.forgets",
       .statement = "A collector that was just entered has counts of zero, whatever an earlier one "
                    "counted.",
       .source = "M60 M63",
       .needs = {route, balance, collect},
       .edges = {},
       .generate = without_collector,
       .check = judged(check_forgets)},
      {.id = "collector.reset",
       .statement = "A snapshot sets the counters to zero, and changes nothing else.",
       .source = "protocol; M37 M63",
       .needs = {route, balance, collect},
       .edges = {"several layers"},
       .generate = with_collector,
       .check = judged(check_reset)},
      {.id = "collector.layers",
       .statement = "Every snapshot has one record of each layer, under names that stay, with a "
                    "count of at least zero for each expert.",
       .source = "M55 M57 M58 M109",
       .needs = {route, balance, collect},
       .edges = {"several layers"},
       .generate = with_collector,
       .check = judged(check_layers)},
  };
}

}  // namespace ballast::props
