#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "core/random/distributions.h"
#include "props/cases/generate.h"
#include "props/laws/families.h"
#include "props/laws/routing_checks.h"

// The choice of experts: the top_k largest of score + bias, larger first, equal ones by lower
// index.
namespace ballast::props {

namespace {

using enum Capability;

Case evaluations(Stream& stream, std::size_t size) {
  return generate_routing_case(stream, size, 3, false);
}

Case one_evaluation(Stream& stream, std::size_t size) {
  return generate_routing_case(stream, size, 1, false);
}

Case one_finite_evaluation(Stream& stream, std::size_t size) {
  return generate_routing_case(stream, size, 1, true);
}

Case training(Stream& stream, std::size_t size) {
  return generate_case(stream, size, {.nonfinite = true});
}

Case tile_shapes(Stream& stream, std::size_t) {
  Case out;
  out.open.model = generate_tile_model(stream);
  const std::size_t experts = out.open.model.routed_experts;
  const std::size_t tokens = between(stream, 1, 2);
  out.history.push_back(
      Forward{.mode = Mode::eval,
              .logits = generate_logits(stream, tokens, experts, finite_family(stream)),
              .mask = {}});
  out.salt = stream();
  return out;
}

/// Up to 520 experts; every token prefers an expert of its own.
Case preferences(Stream& stream, std::size_t size) {
  Case out;
  ModelSpec& model = out.open.model;
  model = generate_model(stream, size);
  model.layers = 1;
  if (size > 20 && one_in(stream, 4)) {
    model.routed_experts = pick(stream, {16, 65, 129, 257, 384, 520});
  }
  model.top_k = std::min(model.top_k, model.routed_experts);
  const auto order = permutation(stream, model.routed_experts);
  const std::size_t tokens = std::min<std::size_t>(model.routed_experts, 4);
  Matrix<float> logits(tokens, model.routed_experts);
  for (std::size_t t = 0; t < tokens; ++t) logits(t, order[t]) = 3.0f;
  out.history.push_back(Forward{.mode = Mode::eval, .logits = std::move(logits), .mask = {}});
  return out;
}

Case grouped(Stream& stream, std::size_t size) {
  Case out;
  ModelSpec& model = out.open.model;
  const std::size_t groups = between(stream, 2, 4);
  const std::size_t group_size = between(stream, 2, 4);
  const std::size_t kept = between(stream, 1, groups - 1);
  model.routed_experts = groups * group_size;
  model.groups = Groups{groups, kept};
  model.top_k = between(stream, 1, kept * group_size);
  model.score = one_in(stream, 2) ? ScoreFunction::sigmoid : ScoreFunction::logit;
  out.open.biases = Biases{generate_biases(stream, model.routed_experts, bias_family(stream))};
  const std::size_t tokens =
      std::max<std::size_t>(1, generate_tokens(stream, size, model.routed_experts));
  out.history.push_back(Forward{
      .mode = Mode::eval,
      .logits = generate_logits(stream, tokens, model.routed_experts, finite_family(stream)),
      .mask = {}});
  return out;
}

void check_distinct(Subject& subject, const Case& input, Edges& edges) {
  judge_evaluations(subject, input, edges, [](const RoutedToken&) {});
}

void check_top_k(Subject& subject, const Case& input, Edges& edges) {
  judge_evaluations(subject, input, edges, [&](const RoutedToken& token) {
    if (ties_at_cutoff(token.exact, token.chosen.size())) edges.insert("tie at the cutoff");
    expect_best(input.history, token);
  });
}

void check_in_force(Subject& subject, const Case& input, Edges& edges) {
  judge_in_force(subject, input, edges,
                 [&](const RoutedToken& token) { expect_best(input.history, token); });
}

void check_reachable(Subject& subject, const Case& input, Edges& edges) {
  judge_evaluations(subject, input, edges, [&](const RoutedToken& token) {
    const auto first = sure_choice(token.exact, 1, false);
    if (!first) return;
    if (static_cast<std::size_t>((*first)[0]) >= 64) edges.insert("expert above 63");
    if (token.chosen[0] == (*first)[0]) return;
    break_law(place(input.history, token.request, token.token),
              "expert " + text(*first) + " first, whose score + bias is the largest",
              "experts " + text(token.chosen));
  });
}

/// A forward of some tokens of another; what the tokens are in it.
struct Part {
  Forward forward;
  std::vector<std::size_t> tokens;
};

/// Every token chooses in each part as in the whole, where rounding cannot change it.
void expect_same_choices(Subject& subject, const Open& open, const Forward& whole,
                         const std::vector<Part>& parts, const std::string& context) {
  History history = {whole};
  for (const Part& part : parts) history.push_back(part.forward);
  const auto answers = converse(subject, open, history);
  const Routed* all = routed(answers[0]);
  if (all == nullptr) discard();
  const auto biases = opening_biases(open)[whole.layer];
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const Routed* part = routed(answers[p + 1]);
    if (part == nullptr) continue;
    for (std::size_t row = 0; row < parts[p].tokens.size(); ++row) {
      const std::size_t t = parts[p].tokens[row];
      const auto exact = exact_token(open.model, whole.logits.row(t), biases);
      if (!sure_choice(exact, open.model.top_k)) continue;
      if (all->indices[t] == part->indices[row]) continue;
      break_law(place(history, 0, t), "experts " + text(all->indices[t]),
                "experts " + text(part->indices[row]) + " " + context);
    }
  }
}

void check_alone(Subject& subject, const Case& input, Edges& edges) {
  need_eval_forwards(input);
  note_edges(input, edges);
  Stream stream(input.salt);
  const Forward& whole = some_forward(stream, input.history);
  std::vector<Part> parts;
  for (std::size_t t = 0; t < std::min<std::size_t>(whole.logits.rows(), 4); ++t) {
    const std::size_t token = between(stream, 0, whole.logits.rows() - 1);
    parts.push_back({rows_of(whole, {token}), {token}});
  }
  expect_same_choices(subject, input.open, whole, parts, "when routed alone");
}

void check_token_order(Subject& subject, const Case& input, Edges& edges) {
  need_eval_forwards(input);
  note_edges(input, edges);
  Stream stream(input.salt);
  const Forward& whole = some_forward(stream, input.history);
  if (whole.logits.rows() < 2) discard();
  auto order = permutation(stream, whole.logits.rows());
  Forward permuted = rows_of(whole, order);
  expect_same_choices(subject, input.open, whole, {{std::move(permuted), std::move(order)}},
                      "when the tokens are in another order");
}

/// Two conversations of one forward each, both sure of their choice in the same tokens.
struct Variation {
  Open open;
  Forward forward;
};

/// `compare(token, before, after)` for tokens in which no rounding can matter in either.
template <class Compare>
void compare_sure(Subject& subject, const Variation& a, const Variation& b, bool ties,
                  Compare compare) {
  const auto first = converse(subject, a.open, {a.forward});
  const auto second = converse(subject, b.open, {b.forward});
  const Routed* before = routed(first[0]);
  const Routed* after = routed(second[0]);
  if (before == nullptr || after == nullptr) discard();
  const auto biases_a = opening_biases(a.open)[a.forward.layer];
  const auto biases_b = opening_biases(b.open)[b.forward.layer];
  for (std::size_t t = 0; t < a.forward.logits.rows(); ++t) {
    const auto exact_a = exact_token(a.open.model, a.forward.logits.row(t), biases_a);
    const auto exact_b = exact_token(b.open.model, b.forward.logits.row(t), biases_b);
    if (!sure_choice(exact_a, a.open.model.top_k, ties)) continue;
    if (!sure_choice(exact_b, b.open.model.top_k, ties)) continue;
    compare(t, before->indices[t], after->indices[t]);
  }
}

Biases float_biases(const Open& open) {
  if (open.biases) return *open.biases;
  return Biases(open.model.layers, std::vector<float>(open.model.routed_experts));
}

void check_expert_order(Subject& subject, const Case& input, Edges& edges) {
  need_eval_forwards(input);
  note_edges(input, edges);
  Stream stream(input.salt);
  const Variation original{input.open, some_forward(stream, input.history)};
  const std::size_t experts = input.open.model.routed_experts;
  if (experts < 2) discard();
  const auto order = permutation(stream, experts);  // new expert j is the old expert order[j]
  Variation permuted = original;
  permuted.open.biases = float_biases(input.open);
  for (std::size_t j = 0; j < experts; ++j) {
    for (std::size_t t = 0; t < original.forward.logits.rows(); ++t) {
      permuted.forward.logits(t, j) = original.forward.logits(t, order[j]);
    }
  }
  for (auto& row : *permuted.open.biases) {
    const std::vector<float> old = row;
    for (std::size_t j = 0; j < experts; ++j) row[j] = old[order[j]];
  }
  compare_sure(subject, original, permuted, false,
               [&](std::size_t t, const auto& before, auto after) {
                 for (auto& expert : after) {
                   expert = static_cast<std::int64_t>(order[static_cast<std::size_t>(expert)]);
                 }
                 if (before == after) return;
                 break_law(place({original.forward}, 0, t), "experts " + text(before),
                           "experts " + text(after) + " when the experts are numbered anew");
               });
}

void check_bias_shift(Subject& subject, const Case& input, Edges& edges) {
  need_eval_forwards(input);
  note_edges(input, edges);
  Stream stream(input.salt);
  const Variation original{input.open, some_forward(stream, input.history)};
  const float shift = pick(stream, {1.0f, -2.0f, 16.0f, -34.5f, 0.375f});
  Variation shifted = original;
  Biases biases = float_biases(input.open);
  for (auto& row : biases) {
    for (float& b : row) {
      if (b + shift - shift != b) discard();  // rounding would change the differences
      b += shift;
    }
  }
  shifted.open.biases = biases;
  // Values that differ by less than an ulp of the shift become ties: those do not count.
  compare_sure(subject, original, shifted, false,
               [&](std::size_t t, const auto& before, const auto& after) {
                 if (before == after) return;
                 break_law(place({original.forward}, 0, t), "experts " + text(before),
                           "experts " + text(after) + " when every bias is " +
                               text(static_cast<double>(shift)) + " larger");
               });
}

void check_logit_shift(Subject& subject, const Case& input, Edges& edges) {
  need_eval_forwards(input);
  note_edges(input, edges);
  if (input.open.model.score == ScoreFunction::sigmoid) discard();
  Stream stream(input.salt);
  const Variation original{input.open, some_forward(stream, input.history)};
  Variation shifted = original;
  Matrix<float>& logits = shifted.forward.logits;
  for (std::size_t t = 0; t < logits.rows(); ++t) {
    const float shift = pick(stream, {1.0f, -4.0f, 64.0f});
    for (float& z : logits.row(t)) {
      if (z + shift - shift != z) discard();
      z += shift;
    }
  }
  compare_sure(
      subject, original, shifted, true, [&](std::size_t t, const auto& before, const auto& after) {
        if (before == after) return;
        break_law(
            place({original.forward}, 0, t), "experts " + text(before),
            "experts " + text(after) + " when a constant is added to all logits of the token");
      });
}

bool contains(const std::vector<std::int64_t>& experts, std::size_t expert) {
  return std::ranges::find(experts, static_cast<std::int64_t>(expert)) != experts.end();
}

void check_monotone(Subject& subject, const Case& input, Edges& edges) {
  need_eval_forwards(input);
  note_edges(input, edges);
  Stream stream(input.salt);
  const Forward& forward = some_forward(stream, input.history);
  if (!is_finite(forward)) discard();
  Biases biases = float_biases(input.open);
  const std::size_t expert = between(stream, 0, input.open.model.routed_experts - 1);
  biases[forward.layer][expert] += pick(stream, {0.25f, 1.0f, 8.0f});
  Open raised = input.open;
  raised.biases = biases;
  const auto before = converse(subject, input.open, {forward});
  const auto after = converse(subject, raised, {forward});
  for (std::size_t t = 0; t < forward.logits.rows(); ++t) {
    const auto& chosen = routed(before[0])->indices[t];
    const auto& then = routed(after[0])->indices[t];
    if (!contains(chosen, expert) || contains(then, expert)) continue;
    break_law(
        place({forward}, 0, t),
        "expert " + std::to_string(expert) + " among those chosen, as in experts " + text(chosen),
        "experts " + text(then) + " when its bias is raised");
  }
}

void check_repeatable(Subject& subject, const Case& input, Edges& edges) {
  need_eval_forwards(input);
  note_edges(input, edges);
  const auto once = converse(subject, input.open, input.history);
  History twice = input.history;
  twice.insert(twice.end(), input.history.begin(), input.history.end());
  const auto answers = converse(subject, input.open, twice);
  for (std::size_t i = 0; i < twice.size(); ++i) {
    const std::size_t first = i % input.history.size();
    const auto& forward = std::get<Forward>(input.history[first]);
    const auto exact = opening_biases(input.open)[forward.layer];
    if (const Routed* answer = routed(once[first]); answer != nullptr) {
      for (std::size_t t = 0; t < answer->indices.size(); ++t) {
        if (ties_at_cutoff(exact_token(input.open.model, forward.logits.row(t), exact),
                           input.open.model.top_k)) {
          edges.insert("tie at the cutoff");
        }
      }
    }
    expect_same(input.history, first, once[first], answers[i], "when asked again");
  }
}

void check_ranks(Subject& subject, const Case& input, Edges& edges) {
  note_edges(input, edges);
  if (input.open.ranks < 2) discard();
  History history = input.history;
  Stream stream(input.salt);
  Forward forward = some_forward(stream, input.history);
  forward.mode = Mode::eval;
  for (std::size_t rank = 0; rank < input.open.ranks; ++rank) {
    forward.rank = rank;
    history.push_back(forward);
  }
  const auto answers = converse(subject, input.open, history);
  const std::size_t first = input.history.size();
  for (std::size_t rank = 1; rank < input.open.ranks; ++rank) {
    expect_same(history, first + rank, answers[first], answers[first + rank],
                "on rank " + std::to_string(rank) + ", unlike rank 0");
  }
}

void check_groups(Subject& subject, const Case& input, Edges& edges) {
  const ModelSpec& model = input.open.model;
  if (!model.groups || model.groups->n_group == 0 ||
      model.routed_experts % model.groups->n_group != 0) {
    discard();
  }
  const std::size_t group_size = model.routed_experts / model.groups->n_group;
  if (model.top_k > model.groups->topk_group * group_size) discard();
  judge_evaluations(subject, input, edges, [&](const RoutedToken& token) {
    std::vector<bool> open_group(model.groups->n_group);
    for (const std::int64_t expert : token.chosen) {
      open_group[static_cast<std::size_t>(expert) / group_size] = true;
    }
    const auto groups = static_cast<std::size_t>(std::ranges::count(open_group, true));
    const std::string where = place(input.history, token.request, token.token);
    if (groups > model.groups->topk_group) {
      break_law(where,
                "experts of at most " + std::to_string(model.groups->topk_group) + " groups of " +
                    std::to_string(group_size),
                "experts " + text(token.chosen) + " of " + std::to_string(groups));
    }
    ExactToken inside = token.exact;
    for (std::size_t j = 0; j < model.routed_experts; ++j) {
      if (!open_group[j / group_size]) inside.values[j] = -INFINITY;
      if (token.exact.values[j] < 0) edges.insert("negative score + bias");
    }
    if (const auto wrong = wrong_choice(inside, token.chosen)) {
      break_law(where, "the largest of score + bias in the groups chosen from",
                "experts " + text(token.chosen) + ": " + *wrong);
    }
  });
}

/// The groups as if they were experts: each has the sum of its best `scored` values.
ExactToken group_sums(const ExactToken& token, std::size_t groups, std::size_t scored) {
  const std::size_t size = token.values.size() / groups;
  ExactToken sums{.values = std::vector<double>(groups),
                  .margins = std::vector<double>(groups),
                  .gates = {},
                  .gate_errors = {}};
  for (std::size_t g = 0; g < groups; ++g) {
    const auto first = token.values.begin() + static_cast<std::ptrdiff_t>(g * size);
    std::vector<double> values(first, first + static_cast<std::ptrdiff_t>(size));
    std::ranges::sort(values, std::greater{});
    for (std::size_t i = 0; i < scored; ++i) sums.values[g] += values[i];
    for (std::size_t i = 0; i < size; ++i) sums.margins[g] += token.margins[g * size + i];
    // A sum that fp32 does not have is rounded, once an expert.
    const double sum = sums.values[g];
    if (static_cast<double>(static_cast<float>(sum)) != sum) {
      sums.margins[g] += static_cast<double>(scored) * 0x1p-23 * std::abs(sum);
    }
  }
  return sums;
}

/// Whether the choice is right when groups are judged by their best `scored` experts.
bool fits_best_groups(const RoutedToken& token, const Groups& groups, std::size_t scored) {
  const ExactToken sums = group_sums(token.exact, groups.n_group, scored);
  const std::size_t size = token.exact.values.size() / groups.n_group;
  std::vector<bool> is_open(groups.n_group);
  for (const auto expert : token.chosen) is_open[static_cast<std::size_t>(expert) / size] = true;
  for (std::size_t g = 0; g < groups.n_group; ++g) {
    std::size_t surely_better = 0, perhaps_better = 0;
    for (std::size_t other = 0; other < groups.n_group; ++other) {
      if (other == g) continue;
      surely_better += surely_before(sums, other, g);
      perhaps_better += !surely_before(sums, g, other);
    }
    if (is_open[g] && surely_better >= groups.topk_group) return false;
    if (perhaps_better < groups.topk_group) is_open[g] = true;
  }
  ExactToken inside = token.exact;
  for (std::size_t j = 0; j < inside.values.size(); ++j) {
    if (!is_open[j / size]) inside.values[j] = -INFINITY;
  }
  return !wrong_choice(inside, token.chosen);
}

/// By either of the rules in use, and by the same for all tokens.
void check_best_groups(Subject& subject, const Case& input, Edges& edges) {
  const ModelSpec& model = input.open.model;
  if (!model.groups || model.groups->topk_group == 0 || model.groups->n_group == 0) discard();
  const std::size_t size = model.routed_experts / model.groups->n_group;
  if (size * model.groups->n_group != model.routed_experts) discard();
  if (model.top_k > model.groups->topk_group * size) discard();
  std::set<std::size_t> rules = {2, model.top_k / model.groups->topk_group};
  std::erase_if(rules, [&](std::size_t scored) { return scored < 1 || scored > size; });
  if (rules.empty()) discard();
  judge_evaluations(subject, input, edges, [&](const RoutedToken& token) {
    if (!token.exact.ordered) return;
    if (model.groups->topk_group < model.groups->n_group) edges.insert("groups left out");
    std::erase_if(rules, [&](std::size_t scored) {
      return !fits_best_groups(token, *model.groups, scored);
    });
    if (!rules.empty()) return;
    const ExactToken sums = group_sums(token.exact, model.groups->n_group, std::min<std::size_t>(2, size));
    break_law(place(input.history, token.request, token.token),
              "experts of the " + std::to_string(model.groups->topk_group) +
                  " best groups, by the sums of their best 2 values, " + text(sums.values) +
                  ", or of their best top_k / topk_group",
              "experts " + text(token.chosen) + ", values " + text(token.exact.values));
  });
}

}  // namespace

std::vector<Law> selection_laws() {
  return {
      {.id = "selection.distinct",
       .statement = "Every valid token is routed to exactly top_k distinct experts of the model, "
                    "whatever its logits are.",
       .source = "algorithms.md 6, 7.2; M78 M79 M82 M84 M85",
       .needs = {route},
       .edges = {"nonfinite logits", "k = E", "no tokens"},
       .generate = evaluations,
       .check = judged(check_distinct)},
      {.id = "selection.top-k",
       .statement = "The experts of a token are the top_k largest of score + bias, best first, "
                    "equal ones by lower index.",
       .source = "algorithms.md 1.2, 2.2, 6; M24 M72 M73 M74 M75 M76 M150",
       .needs = {route},
       .edges = {"tie at the cutoff", "k = 1", "k = E - 1", "several layers"},
       .generate = evaluations,
       .check = judged(check_top_k)},
      {.id = "selection.in-force",
       .statement = "Every forward of a training run selects by the biases that its layer reports "
                    "at that moment.",
       .source = "algorithms.md 2.2; M06 M19 M27 M30 M40",
       .needs = {route, balance},
       .edges = {"several layers"},
       .generate = training,
       .check = judged(check_in_force)},
      {.id = "selection.tile-shapes",
       .statement = "The top_k largest are chosen for powers of two of experts and top_k and for "
                    "the shapes of public models, which fast code treats apart.",
       .source = "algorithms.md 7.1; M69",
       .needs = {route},
       .edges = {},
       .generate = tile_shapes,
       .check = judged(check_top_k)},
      {.id = "selection.every-expert",
       .statement = "Every expert can be chosen: a token that clearly prefers it has it first.",
       .source = "M31 M81 M84",
       .needs = {route},
       .edges = {"expert above 63"},
       .generate = preferences,
       .check = judged(check_reachable)},
      {.id = "selection.every-token",
       .statement = "The top_k largest are chosen for every token of a long batch.",
       .source = "M82",
       .needs = {route},
       .edges = {},
       .generate = generate_long_routing_case,
       .check = judged(check_top_k)},
      {.id = "selection.alone",
       .statement = "A token chooses alone what it chooses in a batch: other tokens do not matter.",
       .source = "algorithms.md 6; M79 M84",
       .needs = {route},
       .edges = {},
       .generate = one_evaluation,
       .check = judged(check_alone)},
      {.id = "selection.token-order",
       .statement = "Tokens in another order choose the same experts.",
       .source = "algorithms.md 2.4 item 9",
       .needs = {route},
       .edges = {},
       .generate = one_evaluation,
       .check = judged(check_token_order)},
      {.id = "selection.expert-order",
       .statement = "Experts numbered anew are chosen alike, ties aside.",
       .source = "algorithms.md 2.4 item 9; M57 M81",
       .needs = {route},
       .edges = {},
       .generate = one_finite_evaluation,
       .check = judged(check_expert_order)},
      {.id = "selection.bias-shift",
       .statement = "A constant added to all biases of a layer changes no choice.",
       .source = "algorithms.md 2.4 item 9; M18 M73 M74",
       .needs = {route},
       .edges = {},
       .generate = one_finite_evaluation,
       .check = judged(check_bias_shift)},
      {.id = "selection.logit-shift",
       .statement = "A constant added to all logits of a token changes no choice by softmax scores "
                    "or by logits.",
       .source = "algorithms.md 2.4 item 9; M106",
       .needs = {route},
       .edges = {},
       .generate = one_finite_evaluation,
       .check = judged(check_logit_shift)},
      {.id = "selection.monotone",
       .statement = "A token that chose an expert still chooses it when the expert's bias is "
                    "raised.",
       .source = "M06",
       .needs = {route},
       .edges = {},
       .generate = one_finite_evaluation,
       .check = judged(check_monotone)},
      {.id = "selection.repeatable",
       .statement = "A forward asked again has the same choices, order and weights to the bit.",
       .source = "algorithms.md 6; M64 M76 M91 M145",
       .needs = {route},
       .edges = {"tie at the cutoff"},
       .generate = evaluations,
       .check = judged(check_repeatable)},
      {.id = "selection.ranks-agree",
       .statement = "All ranks select and weigh alike at any moment of a training run.",
       .source = "algorithms.md 7.3; M02 M25 M54",
       .needs = {route, balance, ranks},
       .edges = {"several ranks"},
       .generate = training,
       .check = judged(check_ranks)},
      {.id = "selection.groups",
       .statement = "With group limits, a token's experts come from at most topk_group groups, and "
                    "are the largest of score + bias there.",
       .source = "algorithms.md 3.5; M66 M72 M75",
       .needs = {route, groups},
       .edges = {"negative score + bias"},
       .generate = grouped,
       .check = judged(check_groups)},
      {.id = "selection.best-groups",
       .statement = "With group limits, the groups that a token chooses from are those with the "
                    "largest sums of their best two values, or of their best top_k / topk_group.",
       .source = "algorithms.md 3.5; M66 M75",
       .needs = {route, groups},
       .edges = {"groups left out"},
       .generate = grouped,
       .check = judged(check_best_groups)},
  };
}

}  // namespace ballast::props
