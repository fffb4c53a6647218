// Subjects that do something else than the built-in one, and are right: no law may accuse them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/model/selection.h"
#include "props/laws/families.h"
#include "props/subjects/built_in_subject.h"
#include "tests/props/support/trials.h"

namespace ballast::props {
namespace {

/// Computes in double, with the C library, and rounds at the end: plain Python does.
struct RoutesInDouble : BuiltInSubject {
  Routing<float> route(const Forward& forward) override {
    Routing<float> routing = BuiltInSubject::route(forward);
    if (model().groups) return routing;  // what is computed here knows no groups
    const auto biases = layer(forward.layer).biases();
    const std::size_t experts = model().routed_experts;
    for (std::size_t t = 0; t < forward.logits.rows(); ++t) {
      if (routing.finite[t] == 0) continue;
      std::vector<double> scores(experts), gates(experts), values(experts);
      double largest = -INFINITY, sum = 0.0;
      for (const float z : forward.logits.row(t)) largest = std::max<double>(largest, z);
      for (std::size_t j = 0; j < experts; ++j) {
        const double z = forward.logits(t, j);
        gates[j] = std::exp(z - largest);
        sum += gates[j];
      }
      for (std::size_t j = 0; j < experts; ++j) {
        const double z = forward.logits(t, j);
        gates[j] /= sum;
        if (model().score == ScoreFunction::sigmoid) gates[j] = 1.0 / (1.0 + std::exp(-z));
        scores[j] = model().score == ScoreFunction::logit ? z : gates[j];
        values[j] = scores[j] + biases[j];
      }
      choose(routing, t, values, gates);
    }
    return routing;
  }

 private:
  void choose(Routing<float>& routing, std::size_t t, const std::vector<double>& values,
              const std::vector<double>& gates) {
    std::vector<std::int32_t> order(values.size());
    for (std::size_t j = 0; j < order.size(); ++j) order[j] = static_cast<std::int32_t>(j);
    std::ranges::stable_sort(order, [&](std::int32_t a, std::int32_t b) {
      return values[static_cast<std::size_t>(a)] > values[static_cast<std::size_t>(b)];
    });
    double sum = 0.0;
    for (std::size_t slot = 0; slot < model().top_k; ++slot) {
      sum += gates[static_cast<std::size_t>(order[slot])];
    }
    for (std::size_t slot = 0; slot < model().top_k; ++slot) {
      const double gate = gates[static_cast<std::size_t>(order[slot])];
      routing.selection.indices(t, slot) = order[slot];
      routing.weights(t, slot) = static_cast<float>(
          (model().renormalize ? gate / std::max(sum, 1e-9) : gate) * model().routed_scale);
    }
    if (model().top_k < order.size()) {
      routing.selection.cutoffs[t] =
          static_cast<float>(values[static_cast<std::size_t>(order[model().top_k])]);
    }
  }
};

/// Refuses forwards with logits that are not finite.
class RefusesNonfinite : public Subject {
 public:
  const Hello& hello() override { return subject_.hello(); }
  Answer open(const Open& open) override { return subject_.open(open); }
  Answer ask(const Request& request) override {
    if (const auto* forward = std::get_if<Forward>(&request)) {
      for (const float z : forward->logits.values()) {
        if (!std::isfinite(z)) return Refusal{"invalid", "a logit is not finite"};
      }
    }
    return subject_.ask(request);
  }

 private:
  BuiltInSubject subject_;
};

/// Checkpoints hold the biases, and not what is pending.
struct RestartsTheStepAtALoad : BuiltInSubject {
  void load(const StateDict& state) override {
    BuiltInSubject::load(state);
    set_biases(Biases(biases()));
  }
};

/// Has nothing but a router, refuses what it cannot do, and throws on what it should never be
/// asked.
class RouterOnly : public Subject {
 public:
  explicit RouterOnly(std::set<Capability> supports) {
    hello_.name = "partial";
    hello_.supports = std::move(supports);
  }
  const Hello& hello() override { return hello_; }
  Answer open(const Open& open) override {
    if (open.ranks > 1 && !has(Capability::ranks)) return Refusal{"unsupported", "ranks"};
    return subject_.open(open);
  }
  Answer ask(const Request& request) override {
    if (const auto* forward = std::get_if<Forward>(&request)) {
      if (!forward->mask.empty() && !has(Capability::mask)) throw SubjectFailure("a mask");
      if (forward->mode == Mode::train && !has(Capability::balance)) throw SubjectFailure("train");
      if (forward->mode == Mode::recompute && !has(Capability::recompute)) {
        throw SubjectFailure("recompute");
      }
    } else if (std::holds_alternative<Collector>(request)) {
      if (!has(Capability::collect)) throw SubjectFailure("collector");
    } else if (std::holds_alternative<MetricsOf>(request)) {
      if (!has(Capability::metrics)) throw SubjectFailure("metrics");
    } else if (std::holds_alternative<Combine>(request)) {
      if (!has(Capability::combine)) throw SubjectFailure("combine");
    } else if (std::holds_alternative<Save>(request) || std::holds_alternative<Load>(request)) {
      if (!has(Capability::state)) throw SubjectFailure("state");
    } else if (!has(Capability::balance)) {
      throw SubjectFailure("biases");
    }
    return subject_.ask(request);
  }

 private:
  bool has(Capability capability) const { return hello_.supports.contains(capability); }

  BuiltInSubject subject_;
  Hello hello_;
};

void expect_no_accusation(Subject& subject, const std::string& name, int cases = 120) {
  for (const Law& law : all_laws()) {
    if (!std::ranges::includes(subject.hello().supports, law.needs)) continue;
    const Trials trials = try_law(law, subject, cases, 5);
    EXPECT_FALSE(trials.broken) << name << "\n" << describe(law, *trials.broken);
  }
}

TEST(LegitimateSubject, MayComputeInDouble) {
  RoutesInDouble subject;
  expect_no_accusation(subject, "in double");
}

TEST(LegitimateSubject, MayRefuseWhatIsNotFinite) {
  RefusesNonfinite subject;
  expect_no_accusation(subject, "refuses");
}

TEST(LegitimateSubject, MayKeepObservationsOfSkippedSteps) {
  BuiltInSubject subject("keeps", OnOverflow::keep);
  expect_no_accusation(subject, "keeps");
}

TEST(LegitimateSubject, MayRestartAStepAtALoad) {
  RestartsTheStepAtALoad subject;
  expect_no_accusation(subject, "restarts");
}

TEST(LegitimateSubject, MayBePartOfAStack) {
  using enum Capability;
  for (const std::set<Capability>& supports : {std::set{route},
                                               {route, balance},
                                               {route, balance, collect},
                                               {route, balance, state},
                                               {route, balance, collect, mask, recompute, state}}) {
    RouterOnly subject(supports);
    expect_no_accusation(subject, "partial", 40);
  }
}

}  // namespace
}  // namespace ballast::props
