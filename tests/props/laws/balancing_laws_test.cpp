// The laws of metrics, quantile balancing, training interplay and drift are kept by correct
// subjects of other arithmetic than the built-in one. What breaks them are the mutants.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "props/laws/families.h"
#include "props/mutants/plain_balancer.h"
#include "tests/props/support/trials.h"

namespace ballast::props {
namespace {

const std::vector<Law>& laws() {
  static const std::vector<Law> all = [] {
    std::vector<Law> together;
    for (const auto& family : {metrics_laws(), quantile_laws(), interplay_laws(), drift_laws()}) {
      together.insert(together.end(), family.begin(), family.end());
    }
    return together;
  }();
  return all;
}

constexpr int cases_kept = 300;

void expect_kept(Subject& subject) {
  for (const Law& law : laws()) {
    const Trials trials = try_law(law, subject, cases_kept);
    EXPECT_FALSE(trials.broken) << describe(law, *trials.broken);
    EXPECT_EQ(trials.unsupported, 0) << law.id;
    EXPECT_LT(trials.discarded, cases_kept / 4) << law.id;
  }
}

/// As Megatron-LM and torchtitan do: everything in fp32, a product instead of a quotient in the
/// histogram, and signs that are centred.
struct InSinglePrecision : PlainBalancer {
  using PlainBalancer::PlainBalancer;

  void move() override {
    const bool adds_signs = spec().kind == BalancerKind::sign && !pending().empty();
    PlainBalancer::move();
    if (adds_signs) centre_now(biases_now());
  }
  std::vector<float> moved(std::vector<double> estimate) const override {
    std::vector<float> biases(estimate.size());
    std::ranges::transform(estimate, biases.begin(), [](double b) { return float(b); });
    centre_now(biases);
    return biases;
  }
  double histogram(const std::vector<double>& r) const override {
    const float from = float(low());
    const float scale = float(spec().bins) / (float(high()) - from);
    std::vector<float> counts(spec().bins);
    for (const double value : r) {
      const float bin = std::floor((float(value) - from) * scale);
      counts[std::size_t(std::clamp(bin, 0.0f, float(spec().bins - 1)))] += 1.0f;
    }
    const float q = float(r.size()) * (float(top_k()) / float(experts()));
    const std::size_t rank = (r.size() * top_k() + experts() - 1) / experts();
    float before = 0.0f;
    std::size_t bin = 0;
    while (before + counts[bin] < float(rank)) before += counts[bin++];
    return double(from + (float(bin) + (q - before) / counts[bin]) / scale);
  }

 private:
  static void centre_now(std::vector<float>& biases) {
    float sum = 0.0f;
    for (const float b : biases) sum += b;
    for (float& b : biases) b -= sum / float(biases.size());
  }
};

TEST(BalancingLaws, AreKeptByAPlainBalancer) {
  WithBalancer<PlainBalancer> subject;
  expect_kept(subject);
}

TEST(BalancingLaws, AreKeptByOtherArithmeticAndCentredSigns) {
  WithBalancer<InSinglePrecision> subject;
  expect_kept(subject);
}

TEST(BalancingLaws, AreKeptWhenSkippedStepsAreKeptToo) {
  class Keeps final : public WithBalancer<PlainBalancer> {
   public:
    Keeps() : WithBalancer("keeps", OnOverflow::keep) {}
  } plain;
  expect_kept(plain);
  BuiltInSubject core("keeps", OnOverflow::keep);
  expect_kept(core);
}

TEST(BalancingLaws, LeaveASubjectThatOpensNothingUnjudged) {
  class Unable final : public Subject {
    const Hello& hello() override { return hello_; }
    Answer open(const Open&) override { return Refusal{"unsupported", "nothing"}; }
    Answer ask(const Request&) override { return Refusal{"unsupported", "nothing"}; }
    Hello hello_;
  } subject;
  for (const Law& law : laws()) {
    const Trials trials = try_law(law, subject, 20);
    EXPECT_FALSE(trials.broken) << law.id;
    EXPECT_EQ(trials.held, 0) << law.id;
  }
}

}  // namespace
}  // namespace ballast::props
