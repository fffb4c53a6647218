#include "core/model/stable_latent_moe.h"

#include <gtest/gtest.h>

#include <memory>

#include "core/balancers/no_balancer.h"
#include "core/balancers/sign_balancer.h"
#include "core/model/language_model.h"
#include "tests/core/support/random_matrix.h"
#include "tests/core/support/reference_moe.h"

namespace ballast {
namespace {

using test::random_matrix;

StableLatentMoESettings small_settings() {
  return {.router = {.hidden = 6, .routed_experts = 5, .top_k = 2},
          .latent = 4,
          .expert_inner = 3,
          .shared_experts = 2,
          .shared_inner = 3};
}

template <class Real>
std::unique_ptr<StableLatentMoE<Real>> make_moe(const StableLatentMoESettings& settings,
                                                std::uint64_t seed = 1) {
  auto moe = std::make_unique<StableLatentMoE<Real>>(
      settings, std::make_unique<NoBalancer>(settings.router.routed_experts));
  initialize<Real>(*moe, Stream(seed));
  return moe;
}

/// What a balancer was shown, for tests of who is shown what.
class RecordingBalancer final : public Balancer {
 public:
  explicit RecordingBalancer(std::size_t experts) : biases_(experts, 0.0f) {}
  std::span<const float> biases() const override { return biases_; }
  void set_biases(std::span<const float> biases) override { biases_.assign(biases.begin(), biases.end()); }
  void observe(const RoutedBatch& batch) override {
    ++observed;
    valid.assign(batch.valid.begin(), batch.valid.end());
    scores = Matrix<float>(batch.scores.rows(), batch.scores.cols());
    std::ranges::copy(batch.scores.values(), scores.values().begin());
  }
  void end_step(bool) override {}
  void save(StateDict&, const std::string&) const override {}
  void load(const StateDict&, const std::string&) override {}

  int observed = 0;
  std::vector<std::uint8_t> valid;
  Matrix<float> scores;

 private:
  std::vector<float> biases_;
};

struct Variant {
  const char* name;
  void (*apply)(StableLatentMoESettings&);
};

const Variant variants[] = {
    {"as published", [](StableLatentMoESettings&) {}},
    {"softmax", [](StableLatentMoESettings& s) { s.router.score = ScoreFunction::softmax; }},
    {"softmax without renormalisation",
     [](StableLatentMoESettings& s) {
       s.router.score = ScoreFunction::softmax;
       s.router.renormalize = false;
       s.router.top_k = 1;
     }},
    {"logit", [](StableLatentMoESettings& s) { s.router.score = ScoreFunction::logit; }},
    {"without renormalisation", [](StableLatentMoESettings& s) { s.router.renormalize = false; }},
    {"swiglu", [](StableLatentMoESettings& s) { s.activation = Activation::swiglu; }},
    {"without norm", [](StableLatentMoESettings& s) { s.aggregate_norm = false; }},
    {"without shared experts", [](StableLatentMoESettings& s) { s.shared_experts = 0; }},
    {"top-1", [](StableLatentMoESettings& s) { s.router.top_k = 1; }},
    {"all experts but one", [](StableLatentMoESettings& s) { s.router.top_k = 4; }},
    {"all experts", [](StableLatentMoESettings& s) { s.router.top_k = 5; }},
    {"scaled", [](StableLatentMoESettings& s) { s.router.routed_scale = 2.5; }},
};

/// Not of the K3 equations: other rules of assignment, with a varying number of experts a token, and capacities.
const Variant assigned_variants[] = {
    {"sinkhorn", [](StableLatentMoESettings& s) { s.router.assignment.rule = AssignmentRule::sinkhorn; }},
    {"expert choice", [](StableLatentMoESettings& s) { s.router.assignment.rule = AssignmentRule::expert_choice; }},
    {"optimal", [](StableLatentMoESettings& s) { s.router.assignment.rule = AssignmentRule::optimal; }},
    {"threshold",
     [](StableLatentMoESettings& s) {
       s.router.assignment.rule = AssignmentRule::threshold;
       s.router.score = ScoreFunction::logit;
     }},
    {"expert choice by softmax",
     [](StableLatentMoESettings& s) {
       s.router.assignment.rule = AssignmentRule::expert_choice;
       s.router.score = ScoreFunction::softmax;
       s.router.renormalize = false;
     }},
    {"capacity by weight",
     [](StableLatentMoESettings& s) { s.router.assignment.capacity = {.drop = DropPolicy::probs, .factor = 1.0}; }},
    {"capacity by position",
     [](StableLatentMoESettings& s) { s.router.assignment.capacity = {.drop = DropPolicy::position, .factor = 0.7}; }},
};

const std::vector<float> some_biases = {0.3f, -0.2f, 0.05f, 0.0f, -0.15f};

template <class Real>
void expect_equal_to_reference(double tolerance) {
  for (const auto& variant : variants) {
    SCOPED_TRACE(variant.name);
    auto settings = small_settings();
    variant.apply(settings);
    const auto moe = make_moe<Real>(settings);
    moe->balancer().set_biases(some_biases);
    const auto x = random_matrix<Real>(9, settings.router.hidden, 2);
    const auto y = moe->forward(x, {});
    for (std::size_t t = 0; t < x.rows(); ++t) {
      const auto expected = test::reference_moe(*moe, test::Vector(x.row(t).begin(), x.row(t).end()));
      for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(y(t, i), expected[i], tolerance);
    }
  }
}

TEST(StableLatentMoE, ComputesWhatTheEquationsSay) {
  expect_equal_to_reference<double>(1e-12);
  expect_equal_to_reference<float>(2e-4);
}

/// sum of c_ti y_ti over a fixed random c: its gradient by y is c.
double weighted_sum(StableLatentMoE<double>& moe, const Matrix<double>& x, const Matrix<double>& c) {
  const auto y = moe.forward(x, {});
  double sum = 0.0;
  for (std::size_t i = 0; i < y.values().size(); ++i) sum += y.values()[i] * c.values()[i];
  return sum;
}

void expect_gradients_of_central_differences(std::span<const Variant> those) {
  for (const auto& variant : those) {
    SCOPED_TRACE(variant.name);
    auto settings = small_settings();
    variant.apply(settings);
    const auto moe = make_moe<double>(settings);
    moe->balancer().set_biases(some_biases);
    auto x = random_matrix<double>(7, settings.router.hidden, 2);
    const auto c = random_matrix<double>(7, settings.router.hidden, 3);
    weighted_sum(*moe, x, c);
    const auto dx = moe->backward(c, serial_executor());

    constexpr double step = 1e-6;
    const auto difference = [&](double& value) {
      const double before = value;
      value = before + step;
      const double above = weighted_sum(*moe, x, c);
      value = before - step;
      const double below = weighted_sum(*moe, x, c);
      value = before;
      return (above - below) / (2.0 * step);
    };
    std::size_t checked = 0;
    for (const auto& [name, parameter] : moe->named_parameters<double>()) {
      SCOPED_TRACE(name);
      for (std::size_t i = 0; i < parameter->value.values().size(); ++i, ++checked) {
        const double expected = difference(parameter->value.values()[i]);
        EXPECT_NEAR(parameter->gradient.values()[i], expected, 1e-7 * (1.0 + std::abs(expected)));
      }
    }
    EXPECT_GT(checked, 200u);
    for (std::size_t i = 0; i < x.values().size(); ++i) {
      const double expected = difference(x.values()[i]);
      EXPECT_NEAR(dx.values()[i], expected, 1e-7 * (1.0 + std::abs(expected)));
    }
  }
}

TEST(StableLatentMoE, GradientsAreThoseOfCentralDifferences) { expect_gradients_of_central_differences(variants); }

TEST(StableLatentMoE, GradientsAreThoseOfCentralDifferencesUnderOtherAssignments) {
  expect_gradients_of_central_differences(assigned_variants);
}

TEST(StableLatentMoE, ShowsTheBalancerWhatWasChosenAndWhatWasKept) {
  auto settings = small_settings();
  settings.router.assignment.capacity = {.drop = DropPolicy::position, .factor = 0.5};
  for (const auto counted : {CountedLoads::chosen, CountedLoads::kept}) {
    StableLatentMoE<float> moe(settings, std::make_unique<SignBalancer>(5, SignSettings{.loads = {.counted = counted}}));
    initialize<float>(moe, Stream(1));
    moe.forward(random_matrix<float>(20, 6, 2), {});
    const auto& routing = moe.routing();
    std::vector<std::int64_t> expected(5);
    count_assignments(counted == CountedLoads::kept ? routing.kept : routing.selection.indices, {}, expected);
    const auto counts = dynamic_cast<const SignBalancer&>(moe.balancer()).pending_counts();
    EXPECT_TRUE(std::ranges::equal(counts, expected));
    EXPECT_EQ(std::ranges::max(counts) > 4, counted == CountedLoads::chosen);  // the capacity
  }
}

TEST(StableLatentMoE, TheCollectorCountsWhatWasChosenBeforeDropping) {
  auto settings = small_settings();
  settings.router.assignment.capacity = {.drop = DropPolicy::position, .factor = 0.5};
  const auto moe = make_moe<float>(settings);
  moe->expert_load_counts().emplace(5, 0);
  moe->forward(random_matrix<float>(20, 6, 2), {});
  std::int64_t sum = 0;
  for (const std::int64_t count : *moe->expert_load_counts()) sum += count;
  EXPECT_EQ(sum, 40);
}

TEST(StableLatentMoE, ScaleOfAllWeightsAlmostVanishesBehindTheNormAndActsLinearlyWithoutIt) {
  for (const bool with_norm : {true, false}) {
    auto settings = small_settings();
    settings.aggregate_norm = with_norm;
    settings.shared_experts = 0;
    settings.norm_eps = 1e-12;
    const auto plain = make_moe<double>(settings);
    settings.router.routed_scale = 3.0;
    const auto scaled = make_moe<double>(settings);
    const auto x = random_matrix<double>(5, settings.router.hidden, 4);
    const auto a = plain->forward(x, {}), b = scaled->forward(x, {});
    for (std::size_t i = 0; i < a.values().size(); ++i) {
      const double expected = (with_norm ? 1.0 : 3.0) * a.values()[i];
      EXPECT_NEAR(b.values()[i], expected, 1e-6 * (1.0 + std::abs(expected)));
    }
  }
}

TEST(StableLatentMoE, RouterGetsNoGradientAtTopOneWithRenormalisation) {
  auto settings = small_settings();
  settings.router.top_k = 1;
  const auto moe = make_moe<double>(settings);
  const auto x = random_matrix<double>(5, settings.router.hidden, 4);
  moe->forward(x, {});
  moe->backward(random_matrix<double>(5, settings.router.hidden, 5), serial_executor());
  for (const double g : moe->router.gate.weight.gradient.values()) EXPECT_NEAR(g, 0.0, 1e-15);
}

TEST(StableLatentMoE, BiasChangesTheChoiceAndNeverTheWeightOfAnExpert) {
  const auto settings = small_settings();
  const auto moe = make_moe<float>(settings);
  const auto x = random_matrix<float>(1, settings.router.hidden, 6);
  moe->balancer().set_biases(std::vector<float>{0, 0, 0, 8, 9});
  moe->forward(x, {});
  const auto& routing = moe->routing();
  EXPECT_EQ(routing.selection.indices(0, 0), 4);
  EXPECT_EQ(routing.selection.indices(0, 1), 3);
  const float s4 = routing.scores(0, 4), s3 = routing.scores(0, 3);
  EXPECT_FLOAT_EQ(routing.weights(0, 0), s4 / (s4 + s3));
}

TEST(StableLatentMoE, OnlyTrainingForwardsThatAreNoRepeatAreObservedAndCounted) {
  const auto settings = small_settings();
  auto owned = std::make_unique<RecordingBalancer>(settings.router.routed_experts);
  auto& balancer = *owned;
  StableLatentMoE<float> moe(settings, std::move(owned));
  initialize<float>(moe, Stream(1));
  moe.expert_load_counts() = std::vector<std::int64_t>(5, 0);
  const auto total = [&] {
    std::int64_t sum = 0;
    for (const auto count : *moe.expert_load_counts()) sum += count;
    return sum;
  };
  const auto x = random_matrix<float>(4, settings.router.hidden, 7);
  const std::vector<std::uint8_t> valid = {1, 0, 1, 1};

  moe.forward(x, {.valid = valid});
  EXPECT_EQ(balancer.observed, 1);
  EXPECT_EQ(balancer.valid, valid);
  EXPECT_EQ(balancer.scores, moe.routing().scores);
  EXPECT_EQ(total(), 3 * 2);

  moe.forward(x, {.valid = valid, .recompute = true});
  moe.eval();
  moe.forward(x, {.valid = valid});
  EXPECT_EQ(balancer.observed, 1);
  EXPECT_EQ(total(), 3 * 2);
}

TEST(StableLatentMoE, TokenWithANonfiniteScoreIsRoutedAndCountedButNotObserved) {
  const auto settings = small_settings();
  auto owned = std::make_unique<RecordingBalancer>(settings.router.routed_experts);
  auto& balancer = *owned;
  StableLatentMoE<float> moe(settings, std::move(owned));
  initialize<float>(moe, Stream(1));
  moe.expert_load_counts() = std::vector<std::int64_t>(5, 0);
  auto x = random_matrix<float>(2, settings.router.hidden, 7);
  x(1, 0) = std::numeric_limits<float>::quiet_NaN();
  moe.forward(x, {});
  EXPECT_EQ(balancer.valid, (std::vector<std::uint8_t>{1, 0}));
  EXPECT_EQ((*moe.expert_load_counts())[0] + (*moe.expert_load_counts())[1], 2 + (moe.routing().selection.indices(0, 0) < 2) + (moe.routing().selection.indices(0, 1) < 2));
}

TEST(StableLatentMoE, RefusesTokensAndMasksOfAnotherShape) {
  const auto settings = small_settings();
  const auto moe = make_moe<float>(settings);
  EXPECT_THROW(moe->forward(random_matrix<float>(2, 5, 1), {}), std::invalid_argument);
  const std::vector<std::uint8_t> valid = {1};
  EXPECT_THROW(moe->forward(random_matrix<float>(2, 6, 1), {.valid = valid}), std::invalid_argument);
}

TEST(StableLatentMoE, RefusesABalancerOfAnotherSize) {
  const auto settings = small_settings();
  EXPECT_THROW(StableLatentMoE<float>(settings, std::make_unique<NoBalancer>(4)), std::invalid_argument);
  EXPECT_THROW(StableLatentMoE<float>(settings, nullptr), std::invalid_argument);
}

TEST(StableLatentMoE, AcceptsNoTokensAtAll) {
  const auto settings = small_settings();
  const auto moe = make_moe<float>(settings);
  EXPECT_EQ(moe->forward(Matrix<float>(0, 6), {}).rows(), 0u);
  EXPECT_EQ(moe->backward(Matrix<float>(0, 6), serial_executor()).rows(), 0u);
}

}  // namespace
}  // namespace ballast
