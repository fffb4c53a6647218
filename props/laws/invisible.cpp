#include <algorithm>
#include <limits>

#include "props/cases/generate.h"
#include "props/laws/families.h"
#include "props/laws/support.h"

// What must leave no trace: evaluation, recomputation, padding, refused requests and questions,
// wherever they stand. Choices, weights, counts and biases of everything else are equal to the bit.
namespace ballast::props {

namespace {

using enum Capability;
using Insertions = std::vector<std::pair<std::size_t, Request>>;

Case any_history(Stream& stream, std::size_t size) {
  return generate_case(stream, size, {});
}

bool trains(const Request& request) {
  const auto* forward = std::get_if<Forward>(&request);
  return forward != nullptr && forward->mode == Mode::train;
}

bool repeats(const Request& request) {
  const auto* forward = std::get_if<Forward>(&request);
  return forward != nullptr && forward->mode == Mode::recompute;
}

Case with_masks(Stream& stream, std::size_t size) {
  Case out = generate_case(stream, size, {});
  for (Request& request : out.history) {
    auto* forward = std::get_if<Forward>(&request);
    if (forward == nullptr || forward->mode == Mode::recompute) continue;
    if (forward->mask.empty()) forward->mask = generate_mask(stream, forward->logits.rows());
  }
  std::erase_if(out.history, repeats);
  return out;
}

/// Ascending places before requests of a history of `requests`, its end included.
std::vector<std::size_t> places(Stream& stream, std::size_t requests) {
  std::vector<std::size_t> at(between(stream, 1, 2));
  for (auto& place : at) place = between(stream, 0, requests);
  std::ranges::sort(at);
  return at;
}

/// A forward on the model's grid: small values, ties.
Forward small_forward(Stream& stream, const Open& open, Mode mode) {
  const std::size_t tokens = between(stream, 1, 4);
  const LogitFamily family = finite_family(stream);
  return {.layer = between(stream, 0, open.model.layers - 1),
          .rank = between(stream, 0, open.ranks - 1),
          .mode = mode,
          .logits = generate_logits(stream, tokens, open.model.routed_experts, family),
          .mask = {}};
}

void check_eval(Subject& subject, const Case& input, Edges& edges) {
  note_edges(input, edges);
  Stream stream(input.salt);
  Insertions insertions;
  for (const std::size_t at : places(stream, input.history.size())) {
    insertions.emplace_back(at, small_forward(stream, input.open, Mode::eval));
  }
  if (collector_active(input.history).back()) edges.insert("collector active");
  expect_invisible(subject, input.open, with_end_shown(input.history, subject.hello().supports),
                   insertions, "an evaluation");
}

/// Up to where a forward may be recomputed: its step, and the biases that it ran under.
std::size_t end_of_step(const History& history, std::size_t forward) {
  std::size_t end = forward + 1;
  while (end < history.size() && !std::holds_alternative<Step>(history[end]) &&
         !std::holds_alternative<SetBiases>(history[end]) &&
         !std::holds_alternative<Load>(history[end])) {
    ++end;
  }
  return end;
}

void check_recompute(Subject& subject, const Case& input, Edges& edges) {
  note_edges(input, edges);
  Stream stream(input.salt);
  Insertions insertions;
  for (std::size_t i = 0; i < input.history.size(); ++i) {
    if (!trains(input.history[i]) || one_in(stream, 3)) continue;
    Forward repeat = std::get<Forward>(input.history[i]);
    repeat.mode = Mode::recompute;
    const std::size_t at = between(stream, i + 1, end_of_step(input.history, i));
    edges.insert(repeat.layer == 0 ? "recomputation of layer 0"
                                   : "recomputation of layer 1 or later");
    insertions.emplace_back(at, std::move(repeat));
  }
  std::ranges::stable_sort(insertions, {}, [](const auto& insertion) { return insertion.first; });
  expect_invisible(subject, input.open, with_end_shown(input.history, subject.hello().supports),
                   insertions, "a recomputation");
}

void check_recompute_repeats(Subject& subject, const Case& input, Edges& edges) {
  note_edges(input, edges);
  Insertions insertions;
  for (std::size_t i = 0; i < input.history.size(); ++i) {
    const auto* forward = std::get_if<Forward>(&input.history[i]);
    if (forward == nullptr || forward->mode != Mode::train || !is_finite(*forward)) continue;
    Forward repeat = *forward;
    repeat.mode = Mode::recompute;
    insertions.emplace_back(i + 1, repeat);
  }
  if (insertions.empty() || input.open.balancer.update != Update::step) discard();
  const Spliced spliced = splice(input.history, insertions);
  const auto answers = converse(subject, input.open, spliced.history);
  for (std::size_t i = 0; i < input.history.size(); ++i) {
    const auto* forward = std::get_if<Forward>(&input.history[i]);
    if (forward == nullptr || forward->mode != Mode::train || !is_finite(*forward)) continue;
    const std::size_t at = spliced.position[i];
    expect_same(input.history, i, answers[at], answers[at + 1], "when recomputed");
  }
}

/// Rows of padding with any content behind those of a forward.
Forward padded(Stream& stream, const Forward& forward, std::size_t experts) {
  const std::size_t rows = forward.logits.rows(), more = between(stream, 1, 3);
  Forward out = forward;
  const LogitFamily family = one_in(stream, 3) ? LogitFamily::one_hot : finite_family(stream);
  const Matrix<float> padding = generate_logits(stream, more, experts, family);
  out.logits = Matrix<float>(rows + more, experts);
  std::ranges::copy(forward.logits.values(), out.logits.values().begin());
  std::ranges::copy(padding.values(),
                    out.logits.values().begin() + static_cast<std::ptrdiff_t>(rows * experts));
  if (out.mask.empty()) out.mask.assign(rows, 1);
  out.mask.resize(rows + more, 0);
  return out;
}

/// The same experts for the valid rows of the shorter batch. Weights are rounded; choices of logits
/// are not.
void expect_same_experts(const History& history, std::size_t request, const Routed& expected,
                         const Routed& seen, const std::string& context) {
  for (std::size_t t = 0; t < expected.indices.size(); ++t) {
    if (!is_valid(std::get<Forward>(history[request]), t)) continue;
    if (expected.indices[t] == seen.indices[t]) continue;
    break_law(place(history, request, t), "experts " + text(expected.indices[t]),
              "experts " + text(seen.indices[t]) + " " + context);
  }
}

/// Longer batches may take another path of vector code, whose rounding differs; with logits there
/// is none.
void need_exact_scores(const Case& input) {
  if (input.open.model.score != ScoreFunction::logit) discard();
}

void check_padding(Subject& subject, const Case& input, Edges& edges) {
  need_exact_scores(input);
  note_edges(input, edges);
  Stream stream(input.salt);
  const History history = with_end_shown(input.history, subject.hello().supports);
  History longer = history;
  std::size_t changed = 0;
  for (Request& request : longer) {
    if (repeats(request)) discard();
    if (!trains(request) || one_in(stream, 3)) continue;
    request = padded(stream, std::get<Forward>(request), input.open.model.routed_experts);
    ++changed;
  }
  if (changed == 0) discard();
  const auto expected = converse(subject, input.open, history);
  const auto seen = converse(subject, input.open, longer);
  const std::string context = "when rows of padding follow the tokens";
  for (std::size_t i = 0; i < history.size(); ++i) {
    const Routed* before = routed(expected[i]);
    const Routed* after = routed(seen[i]);
    if (before == nullptr || after == nullptr) {
      expect_same(history, i, expected[i], seen[i], context);
    } else {
      expect_same_experts(history, i, *before, *after, context);
    }
  }
}

void check_padding_content(Subject& subject, const Case& input, Edges& edges) {
  note_edges(input, edges);
  Stream stream(input.salt);
  const History history = with_end_shown(input.history, subject.hello().supports);
  History other = history;
  std::size_t changed = 0;
  for (Request& request : other) {
    auto* forward = std::get_if<Forward>(&request);
    if (forward == nullptr || forward->mode == Mode::recompute) continue;
    for (std::size_t t = 0; t < forward->mask.size(); ++t) {
      if (forward->mask[t] != 0) continue;
      ++changed;
      const auto row =
          generate_logits(stream, 1, input.open.model.routed_experts,
                          one_in(stream, 3) ? LogitFamily::one_hot : finite_family(stream));
      std::ranges::copy(row.values(), forward->logits.row(t).begin());
    }
  }
  if (changed == 0) discard();
  const auto expected = converse(subject, input.open, history);
  const auto seen = converse(subject, input.open, other);
  for (std::size_t i = 0; i < history.size(); ++i) {
    expect_same(history, i, expected[i], seen[i], "with other logits in rows of padding");
  }
}

/// Requests that no subject can serve.
Request senseless(Stream& stream, const Open& open, bool collector_is_active) {
  const std::size_t experts = open.model.routed_experts;
  Forward forward = small_forward(stream, open, Mode::train);
  switch (between(stream, 0, 5)) {
    case 0:
      forward.layer = open.model.layers;
      return forward;
    case 1:
      forward.rank = open.ranks;
      return forward;
    case 2:
      forward.logits = Matrix<float>(forward.logits.rows(), experts + 1, 1.0f);
      return forward;
    case 3:
      forward.mask.assign(forward.logits.rows() + 1, 1);
      return forward;
    case 4:
      if (!collector_is_active) return Collector{CollectorAction::snapshot, true};
      return Collector{CollectorAction::enter, true};
    default:
      return SetBiases{Biases(open.model.layers, std::vector<float>(experts + 1, 2.0f))};
  }
}

void check_refused(Subject& subject, const Case& input, Edges& edges) {
  note_edges(input, edges);
  Stream stream(input.salt);
  const History history = with_end_shown(input.history, subject.hello().supports);
  const auto expected = converse(subject, input.open, history);
  const std::size_t at = between(stream, 0, history.size() - 1);
  const Request request = senseless(stream, input.open, collector_active(history)[at]);
  const auto* forward = std::get_if<Forward>(&request);
  const auto& supports = subject.hello().supports;
  const bool can_be_asked = std::holds_alternative<Collector>(request) ? supports.contains(collect)
                            : forward != nullptr && !forward->mask.empty() ? supports.contains(mask)
                                                                           : true;
  if (!can_be_asked) discard();
  subject.open(input.open);
  const std::string context = "after the refused " + place({request}, 0).substr(10) +
                              " before request " + std::to_string(at);
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (i == at) {
      const Answer answer = subject.ask(request);
      if (!std::holds_alternative<Refusal>(answer)) discard();  // it found a sense in it
      edges.insert("refused request");
    }
    expect_same(history, i, expected[i], subject.ask(history[i]), context);
  }
}

void check_questions(Subject& subject, const Case& input, Edges& edges) {
  note_edges(input, edges);
  Stream stream(input.salt);
  const auto& supports = subject.hello().supports;
  Insertions insertions;
  for (const std::size_t at : places(stream, input.history.size())) {
    switch (between(stream, 0, 3)) {
      case 0:
        if (supports.contains(metrics)) insertions.emplace_back(at, MetricsOf{{{3, 1, 0}}});
        break;
      case 1:
        if (supports.contains(combine)) {
          insertions.emplace_back(at, Combine{{{.data = 1, .metrics = {{"loss:sum", 1.0}}}}});
        }
        break;
      default:
        insertions.emplace_back(at, GetBiases{});
    }
  }
  expect_invisible(subject, input.open, with_end_shown(input.history, supports), insertions,
                   "a question");
}

void check_empty_batch(Subject& subject, const Case& input, Edges& edges) {
  note_edges(input, edges);
  Stream stream(input.salt);
  Insertions insertions;
  for (const std::size_t at : places(stream, input.history.size())) {
    Forward forward = small_forward(stream, input.open, Mode::train);
    if (subject.hello().supports.contains(mask) && one_in(stream, 2)) {
      forward.mask.assign(forward.logits.rows(), 0);
      edges.insert("all padding");
    } else {
      forward.logits = Matrix<float>(0, input.open.model.routed_experts);
      edges.insert("no tokens");
    }
    insertions.emplace_back(at, std::move(forward));
  }
  expect_invisible(subject, input.open, with_end_shown(input.history, subject.hello().supports),
                   insertions, "a training forward without a valid token");
}

void check_empty_step(Subject& subject, const Case& input, Edges& edges) {
  note_edges(input, edges);
  // Without what may leave observations pending.
  History history = {GetBiases{}};
  for (const Request& request : input.history) {
    const auto* forward = std::get_if<Forward>(&request);
    if (forward == nullptr || forward->mode != Mode::train || valid_tokens(*forward) == 0) {
      history.push_back(request);
    }
  }
  std::erase_if(history, repeats);
  history.push_back(Step{true});
  const auto answers = converse(subject, input.open, history);
  std::size_t reference = 0;  // the last request that told the biases
  for (std::size_t i = 1; i < history.size(); ++i) {
    if (std::holds_alternative<SetBiases>(history[i]) || std::holds_alternative<Load>(history[i])) {
      reference = history.size();
    } else if (std::holds_alternative<BiasesAnswer>(answers[i])) {
      if (reference < history.size()) {
        expect_same(history, i, answers[reference], answers[i],
                    "after a step without a valid token");
      }
      reference = i;
    }
  }
}

}  // namespace

std::vector<Law> invisible_laws() {
  return {
      {.id = "invisible.evaluation",
       .statement = "An evaluation forward changes nothing, wherever it stands.",
       .source = "algorithms.md 2.9; M01 M21",
       .needs = {route, balance},
       .edges = {"collector active"},
       .generate = any_history,
       .check = judged(check_eval)},
      {.id = "invisible.recomputation",
       .statement = "Recomputing a training forward, of any layer, changes nothing.",
       .source = "algorithms.md 2.9; M16 M34 M97",
       .needs = {route, balance, recompute},
       .edges = {"recomputation of layer 0", "recomputation of layer 1 or later"},
       .generate = any_history,
       .check = judged(check_recompute)},
      {.id = "invisible.recomputation-repeats",
       .statement = "A recomputed forward has the choices and weights of the forward that it "
                    "repeats, to the bit.",
       .source = "M34 M91",
       .needs = {route, balance, recompute},
       .edges = {},
       .generate = any_history,
       .check = judged(check_recompute_repeats)},
      {.id = "invisible.padding",
       .statement = "Rows of padding behind the tokens of a training forward change no choice, "
                    "count or bias (logits as scores, where nothing is rounded).",
       .source = "algorithms.md 6 (padding); M05 M22 M26 M52",
       .needs = {route, balance, mask},
       .edges = {},
       .generate =
           [](Stream& stream, std::size_t size) {
             Case out = with_masks(stream, size);
             out.open.model.score = ScoreFunction::logit;
             return out;
           },
       .check = judged(check_padding)},
      {.id = "invisible.padding-content",
       .statement = "What stands in rows of padding changes no choice, count or bias.",
       .source = "algorithms.md 6 (padding); M05 M22 M51 M139",
       .needs = {route, balance, mask},
       .edges = {"padding", "all padding"},
       .generate = with_masks,
       .check = judged(check_padding_content)},
      {.id = "invisible.refused-request",
       .statement = "A request that is refused changes nothing.",
       .source = "protocol; M148",
       .needs = {route, balance},
       .edges = {"refused request"},
       .generate = any_history,
       .check = judged(check_refused)},
      {.id = "invisible.question",
       .statement = "Asking for biases, for metrics of given counts or for a combination of chunks "
                    "changes nothing.",
       .source = "M27 M43",
       .needs = {route, balance},
       .edges = {},
       .generate = any_history,
       .check = judged(check_questions)},
      {.id = "invisible.empty-batch",
       .statement = "A training forward without a valid token changes nothing.",
       .source = "algorithms.md 6 (empty scope); M51 M124",
       .needs = {route, balance},
       .edges = {"no tokens"},
       .generate = any_history,
       .check = judged(check_empty_batch)},
      {.id = "invisible.empty-step",
       .statement = "An optimizer step that saw no valid token moves no bias.",
       .source = "algorithms.md 6 (empty scope); M51 M124",
       .needs = {route, balance},
       .edges = {},
       .generate = any_history,
       .check = judged(check_empty_step)},
  };
}

}  // namespace ballast::props
