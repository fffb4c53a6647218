#include "props/laws/check.h"

#include <algorithm>
#include <utility>

#include "props/cases/sense.h"

namespace ballast::props {

namespace {

struct Ended {};

const char* name(Mode mode) {
  switch (mode) {
    case Mode::train:
      return "train";
    case Mode::eval:
      return "eval";
    case Mode::recompute:
      return "recompute";
  }
  return "";
}

struct Describe {
  std::string operator()(const Forward& f) const {
    return std::string(name(f.mode)) + " forward, layer " + std::to_string(f.layer);
  }
  std::string operator()(const Step& s) const { return s.applied ? "step" : "skipped step"; }
  std::string operator()(const GetBiases&) const { return "biases"; }
  std::string operator()(const SetBiases&) const { return "set_biases"; }
  std::string operator()(const Collector& c) const {
    if (c.action == CollectorAction::snapshot) return "collector snapshot";
    return c.action == CollectorAction::enter ? "collector enter" : "collector exit";
  }
  std::string operator()(const MetricsOf&) const { return "metrics"; }
  std::string operator()(const Combine&) const { return "combine"; }
  std::string operator()(const Save&) const { return "save"; }
  std::string operator()(const Load&) const { return "load"; }
};

struct DescribeAnswer {
  std::string operator()(const Refusal& r) const {
    return "refused as \"" + r.code + "\": " + r.message;
  }
  template <class Other>
  std::string operator()(const Other&) const {
    return "an answer of another kind or shape";
  }
};

bool is_unsupported(const Answer& answer) {
  const auto* const refusal = std::get_if<Refusal>(&answer);
  return refusal != nullptr && refusal->code == "unsupported";
}

bool is_choice(const std::vector<std::int64_t>& row, const ModelSpec& model) {
  return row.size() == model.top_k && std::ranges::all_of(row, [&](std::int64_t expert) {
           return expert >= 0 && expert < static_cast<std::int64_t>(model.routed_experts);
         });
}

bool fits(const Routed& routed, std::size_t tokens, const ModelSpec& model) {
  return routed.indices.size() == tokens && routed.weights.size() == tokens &&
         std::ranges::all_of(routed.indices,
                             [&](const auto& row) { return is_choice(row, model); }) &&
         std::ranges::all_of(routed.weights,
                             [&](const auto& row) { return row.size() == model.top_k; });
}

}  // namespace

void Check::end(Outcome::Kind kind) {
  outcome_.kind = kind;
  throw Ended{};
}

void Check::discard() {
  end(Outcome::Kind::discarded);
}

void Check::broken(const std::string& place, std::string expected, std::string seen) {
  outcome_.where =
      asked_ == 0 ? "open" : "request " + std::to_string(asked_ - 1) + " (" + last_ + ")";
  if (!place.empty()) outcome_.where += ", " + place;
  outcome_.expected = std::move(expected);
  outcome_.seen = std::move(seen);
  end(Outcome::Kind::broken);
}

void Check::wrong_answer(const Answer& answer, const std::string& expected) {
  broken("", expected, std::visit(DescribeAnswer{}, answer));
}

void Check::open(const Open& open) {
  open_ = open;
  asked_ = 0;
  const Answer answer = subject_.open(open);
  if (is_unsupported(answer)) end(Outcome::Kind::unsupported);
  if (!std::holds_alternative<Done>(answer)) wrong_answer(answer, "a case that opens");
}

Answer Check::ask(const Request& request) {
  ++asked_;
  last_ = std::visit(Describe{}, request);
  Answer answer = subject_.ask(request);
  if (is_unsupported(answer)) end(Outcome::Kind::unsupported);
  return answer;
}

void Check::done(const Request& request) {
  const Answer answer = ask(request);
  if (!std::holds_alternative<Done>(answer)) wrong_answer(answer, "done");
}

Routed Check::route(const Request& forward) {
  Answer answer = ask(forward);
  auto* const routed = std::get_if<Routed>(&answer);
  const std::size_t tokens = std::get<Forward>(forward).logits.rows();
  if (routed == nullptr || !fits(*routed, tokens, model())) {
    wrong_answer(answer, "indices and weights [" + std::to_string(tokens) + " tokens][" +
                             std::to_string(model().top_k) + "] of experts below " +
                             std::to_string(model().routed_experts));
  }
  return std::move(*routed);
}

BiasRows Check::bias_rows(Answer answer) {
  auto* const biases = std::get_if<BiasesAnswer>(&answer);
  if (biases == nullptr || biases->biases.size() != model().layers ||
      !std::ranges::all_of(biases->biases,
                           [&](const auto& row) { return row.size() == model().routed_experts; })) {
    wrong_answer(answer, "biases [" + std::to_string(model().layers) + " layers][" +
                             std::to_string(model().routed_experts) + " experts]");
  }
  return std::move(biases->biases);
}

BiasRows Check::step(const Request& step) {
  return bias_rows(ask(step));
}

BiasRows Check::biases() {
  return bias_rows(ask(GetBiases{}));
}

Snapshot Check::snapshot() {
  Answer answer = ask(Collector{});
  auto* const snapshot = std::get_if<Snapshot>(&answer);
  if (snapshot == nullptr) wrong_answer(answer, "a snapshot");
  return std::move(*snapshot);
}

std::map<std::string, double> Check::metrics(const Request& request) {
  Answer answer = ask(request);
  auto* const metrics = std::get_if<MetricsAnswer>(&answer);
  if (metrics == nullptr) wrong_answer(answer, "metrics");
  return std::move(metrics->metrics);
}

std::function<Outcome(Subject&, const Case&)> checked(void (*judge)(Check& check,
                                                                    const Case& input)) {
  return [judge](Subject& subject, const Case& input) {
    Check check(subject);
    try {
      check.discard_unless(makes_sense(input));
      judge(check, input);
    } catch (const Ended&) {
      // The outcome says how.
    }
    return check.outcome();
  };
}

namespace {

/// The conversation behind `follow`.
class Follower {
 public:
  Follower(Check& check, const Case& input, const Observer& observer)
      : check_(check),
        observer_(observer),
        at_forward_(input.open.balancer.update == Update::forward),
        biases_(opening_biases(input.open)),
        pending_(input.open.model.layers) {
    for (std::size_t l = 0; l < pending_.size(); ++l) pending_[l].layer = l;
  }

  void ask(const Request& request) {
    if (const auto* const forward = std::get_if<Forward>(&request)) {
      check_.discard_unless(forward->layer < pending_.size());
      after_forward(*forward, check_.route(request));
    } else if (const auto* const step = std::get_if<Step>(&request)) {
      after_step(*step, check_.step(request));
    } else {
      check_.discard();
    }
  }

 private:
  void after_forward(const Forward& forward, Routed routed) {
    if (observer_.routed) observer_.routed(forward, routed, biases_[forward.layer]);
    if (forward.mode != Mode::train) return;
    pending_[forward.layer].forwards.push_back(&forward);
    pending_[forward.layer].routed.push_back(std::move(routed));
    if (at_forward_) move(pending_[forward.layer], check_.biases());
  }

  void after_step(const Step& step, const BiasRows& answered) {
    if (!step.applied) {
      if (check_.hello().on_overflow == OnOverflow::discard) drop_pending();
      biases_ = answered;
      return;
    }
    for (BiasMove& pending : pending_) move(pending, answered);
  }

  void move(BiasMove& pending, const BiasRows& answered) {
    pending.before = std::exchange(biases_[pending.layer], answered[pending.layer]);
    pending.after = biases_[pending.layer];
    if (observer_.moved) observer_.moved(pending);
    clear(pending);
  }

  void drop_pending() {
    for (BiasMove& pending : pending_) clear(pending);
  }

  static void clear(BiasMove& pending) {
    pending.forwards.clear();
    pending.routed.clear();
  }

  Check& check_;
  const Observer& observer_;
  bool at_forward_;
  BiasRows biases_;
  std::vector<BiasMove> pending_;
};

}  // namespace

void follow(Check& check, const Case& input, const Observer& observer) {
  check.open(input.open);
  Follower follower(check, input, observer);
  for (const Request& request : input.history) follower.ask(request);
}

}  // namespace ballast::props
