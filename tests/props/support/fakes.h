#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "props/campaign/subject_pool.h"
#include "props/laws/law.h"

/// Laws and subjects that are known through and through.
namespace ballast::props::test {

/// A subject that answers every request with Done, or as it is told.
class FakeSubject final : public Subject {
 public:
  explicit FakeSubject(std::set<Capability> supports = {Capability::route},
                       std::function<Answer(const Request&)> answer = {})
      : answer_(std::move(answer)) {
    hello_.name = "fake";
    hello_.supports = std::move(supports);
  }
  const Hello& hello() override { return hello_; }
  Answer open(const Open&) override { return Done{}; }
  Answer ask(const Request& request) override { return answer_ ? answer_(request) : Answer(Done{}); }

 private:
  Hello hello_;
  std::function<Answer(const Request&)> answer_;
};

inline SubjectPool fake_subjects() {
  return SubjectPool([] { return std::make_unique<FakeSubject>(); });
}

inline Case case_of(std::vector<Request> history) {
  Case out;
  out.history = std::move(history);
  return out;
}

/// One training forward of a few tokens and experts with logits that are multiples of 1/8 in [0, 16).
inline Case one_forward(Stream& stream, std::size_t size) {
  Case out;
  const std::size_t experts = 2 + stream() % 4, tokens = 1 + size / 20;
  out.open.model = {.layers = 1, .routed_experts = experts, .top_k = 1};
  Forward forward{.layer = 0, .rank = 0, .mode = Mode::train, .logits = Matrix<float>(tokens, experts), .mask = {}};
  for (float& z : forward.logits.values()) z = static_cast<float>(stream() % 128) / 8.0f;
  out.history.emplace_back(std::move(forward));
  out.salt = stream();
  return out;
}

inline float largest_logit(const Case& input) {
  float most = 0.0f;
  for (const Request& request : input.history) {
    const auto* forward = std::get_if<Forward>(&request);
    if (forward == nullptr) continue;
    for (const float z : forward->logits.values()) most = std::max(most, z);
  }
  return most;
}

/// A law whose check does not look at the subject but for asking it.
inline Law law_of(std::string id, std::function<Outcome(Subject&, const Case&)> check) {
  return {.id = std::move(id),
          .statement = "A law made up for a test holds.",
          .source = "this test",
          .needs = {Capability::route},
          .edges = {},
          .generate = one_forward,
          .check = std::move(check)};
}

inline Outcome outcome_of(Outcome::Kind kind, std::set<std::string> edges = {}) {
  Outcome out;
  out.kind = kind;
  out.edges = std::move(edges);
  return out;
}
inline Outcome holds() { return {}; }
inline Outcome broken() {
  return {.kind = Outcome::Kind::broken, .where = "request 1", .expected = "less", .seen = "more", .edges = {}};
}

/// Broken by every logit of at least `limit`: the smallest case is one token, one expert, this logit.
inline Law law_below(std::string id, float limit) {
  return law_of(std::move(id), [limit](Subject&, const Case& input) {
    return largest_logit(input) < limit ? holds() : broken();
  });
}

}  // namespace ballast::props::test
