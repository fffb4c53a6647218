#include "props/laws/support.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "props/cases/sense.h"

namespace ballast::props {

namespace {

/// Carries an outcome from the middle of a check to its end.
struct Ended {
  Outcome outcome;
};

[[noreturn]] void end(Outcome::Kind kind) {
  Outcome outcome;
  outcome.kind = kind;
  throw Ended{std::move(outcome)};
}

const char* name_of(Mode mode) {
  return mode == Mode::train ? "train" : mode == Mode::eval ? "eval" : "recompute";
}

const char* name_of(CollectorAction action) {
  return action == CollectorAction::enter  ? "enter"
         : action == CollectorAction::exit ? "exit"
                                           : "snapshot";
}

std::string name_of(const Request& request) {
  if (const auto* f = std::get_if<Forward>(&request)) {
    return std::string(name_of(f->mode)) + " forward, layer " + std::to_string(f->layer);
  }
  if (const auto* s = std::get_if<Step>(&request)) return s->applied ? "step" : "skipped step";
  if (const auto* c = std::get_if<Collector>(&request)) {
    return std::string("collector ") + name_of(c->action);
  }
  if (std::holds_alternative<GetBiases>(request)) return "biases";
  if (std::holds_alternative<SetBiases>(request)) return "set_biases";
  if (std::holds_alternative<MetricsOf>(request)) return "metrics";
  if (std::holds_alternative<Combine>(request)) return "combine";
  return std::holds_alternative<Save>(request) ? "save" : "load";
}

template <class Values, class Text>
std::string joined(const Values& values, Text as_text) {
  constexpr std::size_t shown_max = 16;
  std::string out;
  std::size_t shown = 0;
  for (const auto& value : values) {
    if (shown == shown_max) return out + " ... (" + std::to_string(values.size()) + ")";
    if (shown++ > 0) out += ' ';
    out += as_text(value);
  }
  return out;
}

bool same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}
bool same(const std::optional<double>& a, const std::optional<double>& b) {
  return a.has_value() == b.has_value() && (!a || same(*a, *b));
}
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return std::ranges::equal(a, b, [](const T& x, const T& y) { return same(x, y); });
}
bool same(const LayerSnapshot& a, const LayerSnapshot& b) {
  return a.expert_load_counts == b.expert_load_counts && a.tokens == b.tokens &&
         same(a.max_load_over_mean, b.max_load_over_mean) &&
         a.zero_load_experts == b.zero_load_experts && same(a.biases, b.biases);
}

std::string shown(const LayerSnapshot& record) {
  return "counts " + props::text(record.expert_load_counts) + ", biases " +
         joined(record.biases, [](const auto& b) { return b ? props::text(*b) : "null"; });
}

// What converse demands.

void check(const History& history, std::size_t i, const ModelSpec& model, const Forward& forward,
           const Routed& answer) {
  const std::size_t tokens = forward.logits.rows();
  if (answer.indices.size() != tokens || answer.weights.size() != tokens) {
    break_law(
        place(history, i), std::to_string(tokens) + " rows of choices and weights",
        std::to_string(answer.indices.size()) + " and " + std::to_string(answer.weights.size()));
  }
  for (std::size_t t = 0; t < tokens; ++t) {
    const auto& chosen = answer.indices[t];
    if (chosen.size() != model.top_k || answer.weights[t].size() != model.top_k) {
      break_law(place(history, i, t), std::to_string(model.top_k) + " experts and weights",
                std::to_string(chosen.size()) + " and " + std::to_string(answer.weights[t].size()));
    }
    if (!is_valid(forward, t)) continue;
    for (std::size_t slot = 0; slot < chosen.size(); ++slot) {
      const bool exists =
          chosen[slot] >= 0 && chosen[slot] < static_cast<std::int64_t>(model.routed_experts);
      const auto before = chosen.begin() + static_cast<std::ptrdiff_t>(slot);
      if (exists && std::find(chosen.begin(), before, chosen[slot]) == before) continue;
      break_law(place(history, i, t),
                std::to_string(model.top_k) + " distinct experts within 0.." +
                    std::to_string(model.routed_experts - 1),
                "experts " + props::text(chosen));
    }
  }
}

void check(const History& history, std::size_t i, const ModelSpec& model,
           const BiasesAnswer& answer) {
  bool fits = answer.biases.size() == model.layers;
  for (const auto& row : answer.biases) fits &= row.size() == model.routed_experts;
  if (fits) return;
  break_law(place(history, i),
            "biases of " + std::to_string(model.layers) + " layers and " +
                std::to_string(model.routed_experts) + " experts",
            "biases of another shape");
}

void check(const History& history, std::size_t i, const ModelSpec& model, const Snapshot& answer) {
  for (const auto& [name, record] : answer.layers) {
    if (record.expert_load_counts.size() == model.routed_experts &&
        record.biases.size() == model.routed_experts) {
      continue;
    }
    break_law(place(history, i),
              "a count and a bias for each of " + std::to_string(model.routed_experts) + " experts",
              "in layer " + name + ": " + shown(record));
  }
}

/// The type that a request calls for, with its shape.
void check(const History& history, std::size_t i, const ModelSpec& model, const Answer& answer) {
  const Request& request = history[i];
  if (const auto* refusal = std::get_if<Refusal>(&answer)) {
    if (refusal->code == "unsupported") end(Outcome::Kind::unsupported);
    const auto* forward = std::get_if<Forward>(&request);
    if (forward != nullptr && !is_finite(*forward)) return;
    break_law(place(history, i), "an answer",
              "refused as " + refusal->code + ": " + refusal->message);
  }
  if (const auto* forward = std::get_if<Forward>(&request)) {
    if (const auto* routed = std::get_if<Routed>(&answer)) {
      return check(history, i, model, *forward, *routed);
    }
  } else if (std::holds_alternative<Step>(request) || std::holds_alternative<GetBiases>(request)) {
    if (const auto* biases = std::get_if<BiasesAnswer>(&answer)) {
      return check(history, i, model, *biases);
    }
  } else if (const auto* collector = std::get_if<Collector>(&request);
             collector != nullptr && collector->action == CollectorAction::snapshot) {
    if (const auto* snapshot = std::get_if<Snapshot>(&answer)) {
      return check(history, i, model, *snapshot);
    }
  } else if (std::holds_alternative<MetricsOf>(request) ||
             std::holds_alternative<Combine>(request)) {
    if (std::holds_alternative<MetricsAnswer>(answer)) return;
  } else if (std::holds_alternative<Done>(answer)) {
    return;
  }
  break_law(place(history, i), "the answer that the request calls for", "another kind of answer");
}

/// "layers.10" comes after "layers.9".
bool natural_less(std::string_view a, std::string_view b) {
  const auto digits = [](std::string_view s) {
    return static_cast<std::size_t>(
        std::ranges::find_if_not(s, [](unsigned char c) { return std::isdigit(c) != 0; }) -
        s.begin());
  };
  while (!a.empty() && !b.empty()) {
    const std::size_t m = digits(a), n = digits(b);
    if (m > 0 && n > 0) {
      if (m != n) return m < n;
      if (a.substr(0, m) != b.substr(0, n)) return a.substr(0, m) < b.substr(0, n);
      a.remove_prefix(m);
      b.remove_prefix(n);
    } else {
      if (a[0] != b[0]) return a[0] < b[0];
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.size() < b.size();
}

void expect_same_rows(const History& history, std::size_t request, const Routed& expected,
                      const Routed& seen, const std::string& context) {
  const auto& forward = std::get<Forward>(history[request]);
  if (expected.indices.size() != seen.indices.size() ||
      expected.weights.size() != seen.weights.size()) {
    break_law(place(history, request), std::to_string(expected.indices.size()) + " rows",
              std::to_string(seen.indices.size()) + " rows " + context);
  }
  for (std::size_t t = 0; t < expected.indices.size(); ++t) {
    if (!is_valid(forward, t)) continue;
    if (expected.indices[t] != seen.indices[t]) {
      break_law(place(history, request, t), "experts " + text(expected.indices[t]),
                "experts " + text(seen.indices[t]) + " " + context);
    }
    if (!same(expected.weights[t], seen.weights[t])) {
      break_law(place(history, request, t), "weights " + text(expected.weights[t]),
                "weights " + text(seen.weights[t]) + " " + context);
    }
  }
}

void expect_same_layers(const History& history, std::size_t request, const Snapshot& expected,
                        const Snapshot& seen, const std::string& context) {
  const auto names = [](const Snapshot& snapshot) {
    return joined(snapshot.layers, [](const auto& layer) { return layer.first; });
  };
  if (!std::ranges::equal(
          expected.layers, seen.layers, {}, [](const auto& l) { return l.first; },
          [](const auto& l) { return l.first; })) {
    break_law(place(history, request), "layers " + names(expected),
              "layers " + names(seen) + " " + context);
  }
  for (const auto& [name, record] : expected.layers) {
    if (same(record, seen.layers.at(name))) continue;
    break_law(place(history, request), "in layer " + name + ": " + shown(record),
              shown(seen.layers.at(name)) + " " + context);
  }
}

}  // namespace

void break_law(std::string where, std::string expected, std::string seen) {
  Outcome outcome;
  outcome.kind = Outcome::Kind::broken;
  outcome.where = std::move(where);
  outcome.expected = std::move(expected);
  outcome.seen = std::move(seen);
  throw Ended{std::move(outcome)};
}

void discard() {
  end(Outcome::Kind::discarded);
}

std::function<Outcome(Subject&, const Case&)> judged(
    std::function<void(Subject&, const Case&, Edges&)> check) {
  return [check = std::move(check)](Subject& subject, const Case& input) -> Outcome {
    Outcome outcome;
    if (!makes_sense(input)) {
      outcome.kind = Outcome::Kind::discarded;
      return outcome;
    }
    try {
      const auto& supports = subject.hello().supports;
      if (needs_adapting(supports)) {
        const Case reduced = adapted(input, supports);
        if (!makes_sense(reduced)) discard();
        check(subject, reduced, outcome.edges);
      } else {
        check(subject, input, outcome.edges);
      }
    } catch (Ended& ended) {
      ended.outcome.edges = std::move(outcome.edges);
      return std::move(ended.outcome);
    }
    return outcome;
  };
}

std::string place(const History& history, std::size_t request) {
  return "request " + std::to_string(request) + " (" + name_of(history[request]) + ")";
}

std::string place(const History& history, std::size_t request, std::size_t token) {
  return place(history, request) + ", token " + std::to_string(token);
}

std::string text(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.9g", value);
  return buffer;
}

std::string text(const std::vector<std::int64_t>& values) {
  return joined(values, [](std::int64_t v) { return std::to_string(v); });
}

std::string text(const std::vector<double>& values) {
  return joined(values, [](double v) { return text(v); });
}

std::vector<Answer> converse(Subject& subject, const Open& open, const History& history) {
  const Answer opened = subject.open(open);
  if (const auto* refusal = std::get_if<Refusal>(&opened)) {
    if (refusal->code == "unsupported") end(Outcome::Kind::unsupported);
    break_law("open", "an answer", "refused as " + refusal->code + ": " + refusal->message);
  }
  std::vector<Answer> answers;
  answers.reserve(history.size());
  for (std::size_t i = 0; i < history.size(); ++i) {
    answers.push_back(subject.ask(history[i]));
    check(history, i, open.model, answers.back());
  }
  return answers;
}

const Routed* routed(const Answer& answer) {
  return std::get_if<Routed>(&answer);
}

const std::vector<std::vector<double>>& biases_of(const Answer& answer) {
  return std::get<BiasesAnswer>(answer).biases;
}

std::vector<const LayerSnapshot*> records_of(const Answer& answer) {
  std::vector<std::pair<std::string_view, const LayerSnapshot*>> named;
  for (const auto& [name, record] : std::get<Snapshot>(answer).layers) {
    named.emplace_back(name, &record);
  }
  std::ranges::sort(named,
                    [](const auto& a, const auto& b) { return natural_less(a.first, b.first); });
  std::vector<const LayerSnapshot*> records;
  for (const auto& [name, record] : named) records.push_back(record);
  return records;
}

std::vector<std::vector<double>> opening_biases(const Open& open) {
  std::vector<std::vector<double>> biases(open.model.layers,
                                          std::vector<double>(open.model.routed_experts));
  if (!open.biases) return biases;
  for (std::size_t l = 0; l < biases.size(); ++l) {
    biases[l].assign((*open.biases)[l].begin(), (*open.biases)[l].end());
  }
  return biases;
}

bool is_valid(const Forward& forward, std::size_t token) {
  return forward.mask.empty() || forward.mask[token] != 0;
}

std::int64_t valid_tokens(const Forward& forward) {
  if (forward.mask.empty()) return static_cast<std::int64_t>(forward.logits.rows());
  return std::ranges::count_if(forward.mask, [](std::uint8_t v) { return v != 0; });
}

bool is_finite(const Forward& forward) {
  return std::ranges::all_of(forward.logits.values(), [](float z) { return std::isfinite(z); });
}

void expect_same(const History& history, std::size_t request, const Answer& expected,
                 const Answer& seen, const std::string& context) {
  if (expected.index() != seen.index()) {
    const auto kind = [](const Answer& answer) {
      return std::holds_alternative<Refusal>(answer) ? "a refusal" : "an answer";
    };
    break_law(place(history, request), kind(expected), kind(seen) + (" " + context));
  }
  if (const auto* rows = std::get_if<Routed>(&expected)) {
    expect_same_rows(history, request, *rows, std::get<Routed>(seen), context);
  } else if (const auto* biases = std::get_if<BiasesAnswer>(&expected)) {
    const auto& others = std::get<BiasesAnswer>(seen).biases;
    for (std::size_t l = 0; l < biases->biases.size(); ++l) {
      const auto& is = others.size() == biases->biases.size() ? others[l] : std::vector<double>{};
      if (same(biases->biases[l], is)) continue;
      const std::string layer = "layer " + std::to_string(l) + ": biases ";
      break_law(place(history, request), layer + text(biases->biases[l]),
                layer + text(is) + " " + context);
    }
  } else if (const auto* snapshot = std::get_if<Snapshot>(&expected)) {
    expect_same_layers(history, request, *snapshot, std::get<Snapshot>(seen), context);
  } else if (const auto* metrics = std::get_if<MetricsAnswer>(&expected)) {
    const auto& is = std::get<MetricsAnswer>(seen).metrics;
    const bool equal = std::ranges::equal(metrics->metrics, is, [](const auto& a, const auto& b) {
      return a.first == b.first && same(a.second, b.second);
    });
    if (!equal) break_law(place(history, request), "the same metrics", "others " + context);
  }
}

Spliced splice(const History& history,
               const std::vector<std::pair<std::size_t, Request>>& insertions) {
  Spliced spliced;
  auto next = insertions.begin();
  for (std::size_t i = 0; i <= history.size(); ++i) {
    for (; next != insertions.end() && next->first == i; ++next) {
      spliced.history.push_back(next->second);
    }
    if (i == history.size()) break;
    spliced.position.push_back(spliced.history.size());
    spliced.history.push_back(history[i]);
  }
  return spliced;
}

void expect_invisible(Subject& subject, const Open& open, const History& history,
                      const std::vector<std::pair<std::size_t, Request>>& insertions,
                      const std::string& what) {
  if (insertions.empty()) discard();
  const auto without = converse(subject, open, history);
  const Spliced spliced = splice(history, insertions);
  const auto with = converse(subject, open, spliced.history);
  std::string context = "with " + what + " before request";
  for (const auto& insertion : insertions) context += " " + std::to_string(insertion.first);
  for (std::size_t i = 0; i < history.size(); ++i) {
    expect_same(history, i, without[i], with[spliced.position[i]], context);
  }
}

History with_end_shown(const History& history, const std::set<Capability>& supports) {
  History shown = history;
  if (collector_active(history).back()) {
    shown.push_back(Collector{CollectorAction::snapshot, true});
  }
  if (supports.contains(Capability::balance)) shown.push_back(Step{true});
  return shown;
}

std::vector<bool> collector_active(const History& history) {
  std::vector<bool> active = {false};
  for (const Request& request : history) {
    const auto* collector = std::get_if<Collector>(&request);
    active.push_back(collector == nullptr ? active.back()
                                          : collector->action != CollectorAction::exit);
  }
  return active;
}

std::vector<std::size_t> pending_forwards(const History& history) {
  std::vector<std::size_t> pending = {0};
  for (const Request& request : history) {
    const auto* forward = std::get_if<Forward>(&request);
    const auto* step = std::get_if<Step>(&request);
    const bool trains = forward != nullptr && forward->mode == Mode::train;
    const bool closes = step != nullptr && step->applied;
    pending.push_back(closes ? 0 : pending.back() + (trains ? 1 : 0));
  }
  return pending;
}

void note_edges(const Case& input, Edges& edges) {
  const ModelSpec& model = input.open.model;
  if (model.top_k == 1) edges.insert("k = 1");
  if (model.top_k == model.routed_experts) edges.insert("k = E");
  if (model.top_k + 1 == model.routed_experts) edges.insert("k = E - 1");
  if (model.layers > 1) edges.insert("several layers");
  if (input.open.ranks > 1) edges.insert("several ranks");
  for (const Request& request : input.history) {
    if (const auto* forward = std::get_if<Forward>(&request)) {
      if (forward->logits.rows() == 0) edges.insert("no tokens");
      if (!is_finite(*forward)) edges.insert("nonfinite logits");
      const std::int64_t valid = valid_tokens(*forward);
      if (valid < static_cast<std::int64_t>(forward->logits.rows())) {
        edges.insert(valid == 0 ? "all padding" : "padding");
      }
    } else if (const auto* step = std::get_if<Step>(&request)) {
      if (!step->applied) edges.insert("skipped step");
    }
  }
}

}  // namespace ballast::props
