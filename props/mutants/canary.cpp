#include "props/mutants/canary.h"

#include <string>

#include "props/cases/generate.h"

namespace ballast::props {

namespace {

Case one_forward(Stream& stream, std::size_t size) {
  Case out;
  ModelSpec& model = out.open.model;
  model.routed_experts = between(stream, 2, 5);
  Forward forward{.logits = Matrix<float>(between(stream, 1, 1 + size / 20), model.routed_experts),
                  .mask = {}};
  for (float& z : forward.logits.values()) z = static_cast<float>(between(stream, 0, 127)) / 8.0f;
  out.history.emplace_back(std::move(forward));
  out.salt = stream();
  return out;
}

Outcome is_small(Subject&, const Case& input) {
  Outcome outcome;
  const auto* forward =
      input.history.empty() ? nullptr : std::get_if<Forward>(&input.history.front());
  if (forward == nullptr || forward->logits.values().empty()) {
    outcome.kind = Outcome::Kind::discarded;
    return outcome;
  }
  const float first = forward->logits.values()[0];
  if (first < canary_limit) return outcome;
  outcome.kind = Outcome::Kind::broken;
  outcome.where = "request 0, token 0, expert 0";
  outcome.expected = "a logit below " + std::to_string(canary_limit);
  outcome.seen = std::to_string(first);
  return outcome;
}

}  // namespace

const Law& canary() {
  static const Law law{.id = "canary.quarter",
                       .statement = "The first logit is below 12: broken by one case in four, "
                                    "whatever the subject does.",
                       .source = "this project",
                       .needs = {},
                       .edges = {},
                       .generate = one_forward,
                       .check = is_small};
  return law;
}

}  // namespace ballast::props
