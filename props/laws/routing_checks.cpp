#include "props/laws/routing_checks.h"

#include <algorithm>

#include "props/cases/generate.h"

namespace ballast::props {

namespace {

std::string shown(const std::vector<WeightRange>& ranges) {
  std::vector<double> middles;
  for (const WeightRange& range : ranges) middles.push_back(0.5 * (range.low + range.high));
  return text(middles);
}

void judge_forward(const ModelSpec& model, const History& history, std::size_t request,
                   const Routed& answer, const std::vector<double>& biases,
                   const JudgeToken& judge) {
  const auto& forward = std::get<Forward>(history[request]);
  for (std::size_t t = 0; t < forward.logits.rows(); ++t) {
    if (!is_valid(forward, t)) continue;
    const ExactToken exact = exact_token(model, forward.logits.row(t), biases);
    judge({request, t, forward, exact, answer.indices[t], answer.weights[t]});
  }
}

}  // namespace

void need_eval_forwards(const Case& input) {
  for (const Request& request : input.history) {
    const auto* forward = std::get_if<Forward>(&request);
    if (forward == nullptr || forward->mode != Mode::eval) discard();
  }
}

const Forward& some_forward(Stream& stream, const History& history) {
  std::vector<const Forward*> candidates;
  for (const Request& request : history) {
    const auto* forward = std::get_if<Forward>(&request);
    if (forward != nullptr && forward->logits.rows() > 0) candidates.push_back(forward);
  }
  if (candidates.empty()) discard();
  return *pick(stream, std::span<const Forward* const>(candidates));
}

void judge_tokens(const ModelSpec& model, const History& history,
                  const std::vector<Answer>& answers,
                  const std::vector<std::vector<double>>& biases, const JudgeToken& judge) {
  for (std::size_t i = 0; i < history.size(); ++i) {
    const auto* forward = std::get_if<Forward>(&history[i]);
    if (forward == nullptr) continue;
    if (const Routed* answer = routed(answers[i])) {
      judge_forward(model, history, i, *answer, biases[forward->layer], judge);
    }
  }
}

void judge_evaluations(Subject& subject, const Case& input, Edges& edges, const JudgeToken& judge) {
  need_eval_forwards(input);
  note_edges(input, edges);
  const auto answers = converse(subject, input.open, input.history);
  judge_tokens(input.open.model, input.history, answers, opening_biases(input.open), judge);
}

void judge_in_force(Subject& subject, const Case& input, Edges& edges, const JudgeToken& judge) {
  note_edges(input, edges);
  std::vector<std::pair<std::size_t, Request>> questions;
  for (std::size_t i = 0; i < input.history.size(); ++i) {
    if (std::holds_alternative<Forward>(input.history[i])) questions.emplace_back(i, GetBiases{});
  }
  const Spliced spliced = splice(input.history, questions);
  const auto answers = converse(subject, input.open, spliced.history);
  for (std::size_t i = 0; i < input.history.size(); ++i) {
    const auto* forward = std::get_if<Forward>(&input.history[i]);
    if (forward == nullptr) continue;
    const std::size_t at = spliced.position[i];
    const Routed* answer = routed(answers[at]);
    if (answer == nullptr) continue;
    const auto& biases = biases_of(answers[at - 1])[forward->layer];
    judge_forward(input.open.model, input.history, i, *answer, biases, judge);
  }
}

void expect_best(const History& history, const RoutedToken& token) {
  const auto wrong = wrong_choice(token.exact, token.chosen);
  if (!wrong) return;
  break_law(place(history, token.request, token.token),
            "experts " + text(best_choice(token.exact, token.chosen.size())) +
                ", the largest of score + bias " + text(token.exact.values),
            "experts " + text(token.chosen) + ": " + *wrong);
}

void expect_weights(const ModelSpec& model, const History& history, const RoutedToken& token) {
  const auto ranges = weight_ranges(model, token.exact, token.chosen);
  if (!ranges) return;
  for (std::size_t slot = 0; slot < ranges->size(); ++slot) {
    const double weight = token.weights[slot];
    if (weight >= (*ranges)[slot].low && weight <= (*ranges)[slot].high) continue;
    break_law(place(history, token.request, token.token),
              "weights " + shown(*ranges) + " for experts " + text(token.chosen),
              "weights " + text(token.weights));
  }
}

Forward rows_of(const Forward& forward, const std::vector<std::size_t>& rows) {
  Forward out = forward;
  out.logits = Matrix<float>(rows.size(), forward.logits.cols());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::ranges::copy(forward.logits.row(rows[i]), out.logits.row(i).begin());
    if (!forward.mask.empty()) out.mask[i] = forward.mask[rows[i]];
  }
  if (!out.mask.empty()) out.mask.resize(rows.size());
  return out;
}

}  // namespace ballast::props
