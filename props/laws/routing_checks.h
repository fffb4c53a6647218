#pragma once

#include <functional>
#include <vector>

#include "props/laws/support.h"
#include "props/oracles/exact_routing.h"

/// What the laws of selection and of weights share: conversations of forwards whose every token is
/// judged.
namespace ballast::props {

/// One token of a forward and what was answered for it.
struct RoutedToken {
  std::size_t request;
  std::size_t token;
  const Forward& forward;
  const ExactToken& exact;
  const std::vector<std::int64_t>& chosen;
  const std::vector<double>& weights;
};
using JudgeToken = std::function<void(const RoutedToken&)>;

/// Discards histories of anything but evaluation forwards.
void need_eval_forwards(const Case& input);
/// One forward with tokens, chosen by the stream; discards when there is none.
const Forward& some_forward(Stream& stream, const History& history);

/// Judges every valid token of every answered forward, under the given biases.
void judge_tokens(const ModelSpec& model, const History& history,
                  const std::vector<Answer>& answers,
                  const std::vector<std::vector<double>>& biases, const JudgeToken& judge);
/// Holds a conversation of evaluation forwards and judges it under the biases it opened with.
void judge_evaluations(Subject& subject, const Case& input, Edges& edges, const JudgeToken& judge);
/// Holds any conversation, asks for the biases before every forward, and judges under those.
void judge_in_force(Subject& subject, const Case& input, Edges& edges, const JudgeToken& judge);

/// Breaks the law unless the token's experts are the largest of score + bias, best first.
void expect_best(const History& history, const RoutedToken& token);
/// Breaks the law unless each weight lies where it has to.
void expect_weights(const ModelSpec& model, const History& history, const RoutedToken& token);

/// A forward of some rows of another, in the given order.
Forward rows_of(const Forward& forward, const std::vector<std::size_t>& rows);

}  // namespace ballast::props
