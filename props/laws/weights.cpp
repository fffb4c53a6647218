#include <algorithm>
#include <cmath>
#include <limits>

#include "props/cases/generate.h"
#include "props/laws/families.h"
#include "props/laws/routing_checks.h"

// The weights of the chosen experts: p_j = s_j / (sum over the chosen of s + 1e-20) * routed_scale,
// from unbiased scores (Kimi K3 report Eq. 13); s_j * routed_scale without renormalisation. Where
// scores are logits, s is the softmax of them.
namespace ballast::props {

namespace {

using enum Capability;

Case evaluations(Stream& stream, std::size_t size) {
  return generate_routing_case(stream, size, 2, false);
}

Case renormalized(Stream& stream, std::size_t size) {
  Case out = generate_routing_case(stream, size, 2, true);
  out.open.model.renormalize = true;
  return out;
}

Case top_one(Stream& stream, std::size_t size) {
  Case out = renormalized(stream, size);
  out.open.model.top_k = 1;
  return out;
}

Case training(Stream& stream, std::size_t size) {
  return generate_case(stream, size, {});
}

Case tile_shapes(Stream& stream, std::size_t) {
  Case out;
  out.open.model = generate_tile_model(stream);
  out.history.push_back(
      Forward{.mode = Mode::eval,
              .logits = generate_logits(stream, 1, out.open.model.routed_experts,
                                        pick(stream, {LogitFamily::smooth, LogitFamily::grid})),
              .mask = {}});
  return out;
}

/// Sigmoids from 1e-9 to 1e-6 under biases that are far larger.
Case tiny_scores(Stream& stream, std::size_t size) {
  Case out = generate_routing_case(stream, size, 1, true);
  ModelSpec& model = out.open.model;
  model.score = ScoreFunction::sigmoid;
  Biases biases;
  for (std::size_t l = 0; l < model.layers; ++l) {
    biases.push_back(generate_biases(
        stream, model.routed_experts,
        pick(stream, {BiasFamily::offset, BiasFamily::negative, BiasFamily::grid})));
  }
  out.open.biases = biases;
  for (Request& request : out.history) {
    auto& forward = std::get<Forward>(request);
    forward.logits = generate_logits(stream, forward.logits.rows(), model.routed_experts,
                                     LogitFamily::tiny_scores);
  }
  return out;
}

/// Rows whose every score is 0 in fp32.
Case zero_scores(Stream& stream, std::size_t size) {
  Case out = generate_routing_case(stream, size, 2, true);
  out.open.model.score = ScoreFunction::sigmoid;
  for (Request& request : out.history) {
    for (float& z : std::get<Forward>(request).logits.values()) {
      z = one_in(stream, 16) ? -std::numeric_limits<float>::infinity()
                             : pick(stream, {-150.0f, -200.0f, -1e4f});
    }
  }
  return out;
}

void check_value(Subject& subject, const Case& input, Edges& edges) {
  if (input.open.model.renormalize) edges.insert("renormalised");
  if (!input.open.model.renormalize) edges.insert("not renormalised");
  judge_evaluations(subject, input, edges, [&](const RoutedToken& token) {
    expect_weights(input.open.model, input.history, token);
  });
}

void check_in_training(Subject& subject, const Case& input, Edges& edges) {
  judge_in_force(subject, input, edges, [&](const RoutedToken& token) {
    expect_weights(input.open.model, input.history, token);
  });
}

void check_sum(Subject& subject, const Case& input, Edges& edges) {
  const ModelSpec& model = input.open.model;
  if (!model.renormalize) discard();
  const double scale = model.routed_scale;
  const double slack = scale * 1e-6 * static_cast<double>(model.top_k + 1);
  judge_evaluations(subject, input, edges, [&](const RoutedToken& token) {
    double gates = 0.0, sum = 0.0;
    for (std::size_t slot = 0; slot < token.chosen.size(); ++slot) {
      gates += token.exact.gates[static_cast<std::size_t>(token.chosen[slot])];
      sum += token.weights[slot];
      if (token.weights[slot] >= 0.0 && token.weights[slot] <= scale + slack) continue;
      break_law(place(input.history, token.request, token.token),
                "weights within 0.." + text(scale), "weights " + text(token.weights));
    }
    if (gates < 1e-2) return;  // the guard of the denominator may count
    if (std::abs(sum - scale) <= slack) return;
    break_law(place(input.history, token.request, token.token),
              "weights that sum to routed_scale, " + text(scale),
              "weights " + text(token.weights) + ", whose sum is " + text(sum));
  });
}

void check_top_one(Subject& subject, const Case& input, Edges& edges) {
  const ModelSpec& model = input.open.model;
  if (model.top_k != 1 || !model.renormalize) discard();
  judge_evaluations(subject, input, edges, [&](const RoutedToken& token) {
    if (token.exact.gates[static_cast<std::size_t>(token.chosen[0])] < 1e-2) return;
    if (std::abs(token.weights[0] - model.routed_scale) <= 2e-6 * model.routed_scale) return;
    break_law(place(input.history, token.request, token.token),
              "the weight routed_scale, " + text(model.routed_scale),
              "the weight " + text(token.weights));
  });
}

void check_zero_scores(Subject& subject, const Case& input, Edges& edges) {
  const double scale = input.open.model.routed_scale;
  judge_evaluations(subject, input, edges, [&](const RoutedToken& token) {
    double gates = 0.0;
    for (const std::int64_t j : token.chosen)
      gates += token.exact.gates[static_cast<std::size_t>(j)];
    if (!(gates < 1e-45)) return;
    edges.insert("all scores zero");
    double sum = 0.0;
    bool sane = true;
    for (const double weight : token.weights) {
      sane &= weight >= 0.0;
      sum += weight;
    }
    if (sane && sum <= scale * (1 + 1e-5)) return;
    break_law(place(input.history, token.request, token.token),
              "weights that are not negative and sum to at most " + text(scale),
              "weights " + text(token.weights));
  });
}

/// Both forwards' weights, a factor apart, for tokens with the same experts in both.
void expect_proportional(Subject& subject, const Forward& forward, const Open& a, const Open& b,
                         double factor, const std::string& context) {
  constexpr double relative = 1e-6;
  constexpr double vanishing = 1e-30;
  const auto first = converse(subject, a, {forward});
  const auto second = converse(subject, b, {forward});
  const Routed* before = routed(first[0]);
  const Routed* after = routed(second[0]);
  if (before == nullptr || after == nullptr) discard();
  for (std::size_t t = 0; t < forward.logits.rows(); ++t) {
    if (before->indices[t] != after->indices[t]) continue;
    for (std::size_t slot = 0; slot < before->weights[t].size(); ++slot) {
      const double expected = factor * before->weights[t][slot];
      const double seen = after->weights[t][slot];
      if (std::isnan(expected) && std::isnan(seen)) continue;
      if (std::abs(seen - expected) <= relative * std::abs(expected) + vanishing) continue;
      break_law(place({forward}, 0, t),
                text(factor) + " times the weights " + text(before->weights[t]),
                "weights " + text(after->weights[t]) + " " + context);
    }
  }
}

void check_bias_free(Subject& subject, const Case& input, Edges& edges) {
  need_eval_forwards(input);
  note_edges(input, edges);
  Stream stream(input.salt);
  const Forward& forward = some_forward(stream, input.history);
  const float shift = pick(stream, {0.5f, 12.0f, -8.5f, 1024.0f});
  Open shifted = input.open;
  if (!shifted.biases) {
    shifted.biases =
        Biases(input.open.model.layers, std::vector<float>(input.open.model.routed_experts));
  }
  for (auto& row : *shifted.biases) {
    for (float& b : row) b += shift;
  }
  expect_proportional(subject, forward, input.open, shifted, 1.0,
                      "when every bias is " + text(static_cast<double>(shift)) + " larger");
}

void check_scale(Subject& subject, const Case& input, Edges& edges) {
  need_eval_forwards(input);
  note_edges(input, edges);
  Stream stream(input.salt);
  const Forward& forward = some_forward(stream, input.history);
  const double factor = pick(stream, {0.5, 2.0, 8.0});
  Open scaled = input.open;
  scaled.model.routed_scale *= factor;
  expect_proportional(subject, forward, input.open, scaled, factor,
                      "when routed_scale is " + text(factor) + " times as large");
}

}  // namespace

std::vector<Law> weights_laws() {
  return {
      {.id = "weights.value",
       .statement =
           "The weights are the chosen experts' unbiased scores, divided by their sum when "
           "renormalised, times routed_scale.",
       .source = "algorithms.md 1.2, 6; M67 M70 M79 M88",
       .needs = {route},
       .edges = {"renormalised", "not renormalised", "nonfinite logits", "k = 1"},
       .generate = evaluations,
       .check = judged(check_value)},
      {.id = "weights.in-training",
       .statement = "The weights of every forward of a training run come from unbiased scores.",
       .source = "algorithms.md 1.2; M67 M70 M141",
       .needs = {route, balance},
       .edges = {},
       .generate = training,
       .check = judged(check_in_training)},
      {.id = "weights.tile-shapes",
       .statement =
           "The weights are right for powers of two of experts and top_k and for the shapes "
           "of public models, which fast code treats apart.",
       .source = "M69",
       .needs = {route},
       .edges = {},
       .generate = tile_shapes,
       .check = judged(check_value)},
      {.id = "weights.every-token",
       .statement = "The weights are right for every token of a long batch.",
       .source = "M82",
       .needs = {route},
       .edges = {},
       .generate = generate_long_routing_case,
       .check = judged(check_value)},
      {.id = "weights.tiny-scores",
       .statement = "Scores far smaller than the biases keep their weights: they are not recovered "
                    "from score + bias.",
       .source = "algorithms.md 2.6; M71",
       .needs = {route},
       .edges = {},
       .generate = tiny_scores,
       .check = judged(check_value)},
      {.id = "weights.sum",
       .statement = "Renormalised weights lie between 0 and routed_scale and sum to routed_scale.",
       .source = "algorithms.md 7.2; M71 M87",
       .needs = {route},
       .edges = {},
       .generate = renormalized,
       .check = judged(check_sum)},
      {.id = "weights.top-1",
       .statement = "A single renormalised expert has the weight routed_scale.",
       .source = "algorithms.md 1.2; M87",
       .needs = {route},
       .edges = {"k = 1"},
       .generate = top_one,
       .check = judged(check_top_one)},
      {.id = "weights.zero-scores",
       .statement =
           "When all chosen scores are 0, the weights are numbers, not negative, and sum to "
           "at most routed_scale.",
       .source = "algorithms.md 6 (denominators); M51",
       .needs = {route},
       .edges = {"all scores zero"},
       .generate = zero_scores,
       .check = judged(check_zero_scores)},
      {.id = "weights.bias-free",
       .statement = "A constant added to all biases changes no weight of the same experts.",
       .source = "algorithms.md 1.2; M67 M71",
       .needs = {route},
       .edges = {},
       .generate = evaluations,
       .check = judged(check_bias_free)},
      {.id = "weights.scale",
       .statement = "The weights are proportional to routed_scale.",
       .source = "algorithms.md 1.2",
       .needs = {route},
       .edges = {},
       .generate = evaluations,
       .check = judged(check_scale)},
  };
}

}  // namespace ballast::props
