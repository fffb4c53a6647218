#include "core/balancers/quantile_balancer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "tests/core/support/bits.h"
#include "tests/core/support/matrices.h"
#include "tests/core/support/quantile_cases.h"
#include "tests/core/support/routing_cases.h"

namespace ballast {
namespace {

using oracle::all_estimators;
using oracle::bits;
using oracle::expect_near;
using oracle::matrix;
using oracle::repeated;
using Kind = QuantileEstimatorKind;
using Loads = std::vector<std::int64_t>;

constexpr float infinity = std::numeric_limits<float>::infinity();

/// One forward under the biases in force.
oracle::RoutedTokens forward(Balancer& balancer, const Matrix<float>& scores, std::size_t top_k,
                             std::size_t rank = 0) {
  auto routed = oracle::route(scores, balancer.biases(), top_k);
  routed.rank = rank;
  balancer.observe(routed.batch());
  return routed;
}

/// One step of one forward; returns the biases after it.
std::vector<float> step(Balancer& balancer, const Matrix<float>& scores, std::size_t top_k) {
  forward(balancer, scores, top_k);
  balancer.end_step(true);
  return {balancer.biases().begin(), balancer.biases().end()};
}

StateDict saved(const Balancer& balancer) {
  StateDict state;
  balancer.save(state, "balancer.");
  return state;
}

Loads loads_under(const Matrix<float>& scores, std::span<const float> biases, std::size_t top_k) {
  return oracle::loads(oracle::route(scores, biases, top_k));
}

// ---- Golden vectors

TEST(QuantileBalancer, GivesGoldenVectorA) {
  const auto scores = repeated(4, {.92f, .68f, .31f, .07f});
  QuantileBalancer one(4, 1, {.bins = 10}), two(4, 2, {.bins = 10});
  expect_near(step(one, scores, 1), std::vector<double>{-0.5, -0.1, 0.1, 0.5});
  expect_near(step(two, scores, 2), std::vector<double>{-0.55, -0.15, 0.25, 0.45});
  for (const std::size_t k : {1u, 2u}) {
    QuantileBalancer exact(4, k, {.estimator = Kind::exact});
    expect_near(step(exact, scores, k), std::vector<double>{-0.425, -0.185, 0.185, 0.425});
  }
}

TEST(QuantileBalancer, GivesGoldenVectorBFromTwoRanks) {
  QuantileBalancer balancer(4, 1, {.bins = 10});
  forward(balancer, repeated(4, {.92f, .68f, .31f, .07f}), 1, 0);
  forward(balancer, repeated(4, {.07f, .31f, .92f, .68f}), 1, 1);
  balancer.end_step(true);
  expect_near(balancer.biases(), std::vector<double>{-0.2, 0.2, -0.2, 0.2});
}

// Megatron subtracts its state from logits: beta = -b, so all signs turn.
TEST(QuantileBalancer, GivesGoldenVectorDInLogitSpace) {
  QuantileBalancer balancer(4, 2, {.estimator = Kind::microbatch_mean, .ema = 0.25});
  balancer.set_biases(std::vector<float>{-0.2f, 0.1f, -0.4f, 0.5f});
  const auto logits = matrix(
      {{.1f, .8f, .3f, -.2f}, {.7f, .5f, -.9f, .6f}, {-.3f, .9f, .4f, .2f}, {.6f, -.5f, .3f, .1f}});
  const auto routed = forward(balancer, logits, 2);
  EXPECT_EQ(
      std::vector<std::int32_t>(routed.indices.values().begin(), routed.indices.values().end()),
      (std::vector<std::int32_t>{1, 3, 3, 1, 1, 3, 3, 0}));
  balancer.end_step(true);
  expect_near(balancer.biases(), std::vector<double>{-0.06875, 0.15625, -0.26875, 0.18125});
}

TEST(QuantileBalancer, GivesGoldenVectorE) {
  const auto scores = matrix({{0.9f, 0.5f}, {0.8f, 0.7f}, {0.7f, 0.2f}, {0.6f, 0.45f}});
  QuantileBalancer exact(2, 1, {.estimator = Kind::exact}), histogram(2, 1, {});
  expect_near(step(exact, scores, 1), std::vector<double>{-0.075, 0.075});
  const auto biases = step(histogram, scores, 1);
  EXPECT_NEAR(biases[1] - biases[0], 0.399, 1e-6);
  // The exact bias puts expert 1 right on token 3's old cutoff; the histogram's does not.
  EXPECT_EQ(loads_under(scores, biases, 1), (Loads{2, 2}));
}

TEST(QuantileBalancer, GivesGoldenVectorF) {
  const std::vector<float> old{0.05f, -0.02f, 0.0f, -0.03f};
  const auto scores = matrix({{.81f, .32f, .24f, .45f},
                              {.74f, .55f, .13f, .62f},
                              {.66f, .61f, .42f, .29f},
                              {.93f, .27f, .36f, .17f}});
  QuantileBalancer histogram(4, 2, {.bins = 10}), exact(4, 2, {.estimator = Kind::exact});
  histogram.set_biases(old);
  exact.set_biases(old);
  EXPECT_EQ(loads_under(scores, old, 2), (Loads{4, 1, 1, 2}));
  expect_near(step(histogram, scores, 2), std::vector<double>{-0.286, 0.026, 0.130, 0.130});
  expect_near(step(exact, scores, 2), std::vector<double>{-0.21, 0.01, 0.09, 0.11});
  EXPECT_EQ(loads_under(scores, histogram.biases(), 2), (Loads{2, 2, 2, 2}));
  EXPECT_EQ(loads_under(scores, exact.biases(), 2), (Loads{2, 2, 2, 2}));
}

TEST(QuantileBalancer, GivesGoldenVectorG) {
  QuantileBalancer balancer(3, 1, {.bins = 8});
  balancer.set_biases(std::vector<float>{0.07f, -0.03f, -0.04f});
  const auto scores = matrix({{.81f, .32f, .24f},
                              {.74f, .55f, .13f},
                              {.66f, .61f, .42f},
                              {.93f, .27f, .36f},
                              {.58f, .19f, .51f}});
  expect_near(step(balancer, scores, 1),
              std::vector<double>{-0.327245370, 0.126990741, 0.200254630});
}

// ---- Settings

void expect_refused(std::size_t experts, std::size_t top_k, const QuantileSettings& settings) {
  EXPECT_THROW(QuantileBalancer(experts, top_k, settings), std::invalid_argument);
}

TEST(QuantileBalancer, RefusesSettingsOutOfRange) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect_refused(4, 4, {});
  expect_refused(4, 5, {});
  expect_refused(4, 0, {});
  expect_refused(0, 0, {});
  expect_refused(4, 1, {.bins = 1});
  expect_refused(4, 1, {.bins = (std::size_t{1} << 24) + 1});
  for (const double ema : {-0.1, 1.0, nan}) expect_refused(4, 1, {.ema = ema});
  for (const double gain : {0.0, -1.0, nan, HUGE_VAL}) expect_refused(4, 1, {.gain = gain});
  expect_refused(4, 1, {.ema = 0.5, .gain = 0.5});
}

TEST(QuantileBalancer, SaysWhatWouldBeRight) {
  try {
    QuantileBalancer(4, 4, {});
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "quantile balancing needs top_k < routed_experts, not 4 of 4: the cutoff is the "
                 "score of the "
                 "first expert that is not chosen");
  }
}

TEST(QuantileBalancer, BlendsByEmaBeforeCentring) {
  // bhat = (-1/4, 0, 1/4) of one token, b = (1, 0, 0); blended (1/16, 0, 3/16), mean 1/12.
  QuantileBalancer balancer(3, 1, {.estimator = Kind::exact, .ema = 0.25});
  balancer.set_biases(std::vector<float>{1, 0, 0});
  expect_near(step(balancer, matrix({{0.75f, 0.5f, 0.25f}}), 1),
              std::vector<double>{1.0 / 16 - 1.0 / 12, -1.0 / 12, 3.0 / 16 - 1.0 / 12});
}

TEST(QuantileBalancer, TurnsGainIntoAMultipleOfTheChange) {
  // b + 2 (bhat - b) = (-3/2, 0, 1/2), mean -1/3.
  QuantileBalancer balancer(3, 1, {.estimator = Kind::exact, .gain = 2});
  balancer.set_biases(std::vector<float>{1, 0, 0});
  expect_near(step(balancer, matrix({{0.75f, 0.5f, 0.25f}}), 1),
              std::vector<double>{-1.5 + 1.0 / 3, 1.0 / 3, 0.5 + 1.0 / 3});
}

RC_GTEST_PROP(QuantileBalancer, HasTheSameEffectByEmaAndByTheGainThatIsLeft, ()) {
  const auto c = oracle::drawn_routing_case();
  const double ema = *rc::gen::element(0.125, 0.5, 0.9);
  QuantileBalancer a(c.experts(), c.top_k, {.ema = ema}),
      b(c.experts(), c.top_k, {.gain = 1 - ema});
  a.set_biases(c.biases);
  b.set_biases(c.biases);
  const auto by_ema = step(a, c.scores, c.top_k);
  const auto by_gain = step(b, c.scores, c.top_k);
  for (std::size_t j = 0; j < c.experts(); ++j)
    RC_ASSERT(std::abs(by_ema[j] - by_gain[j]) <= 1e-6f);
}

TEST(QuantileBalancer, RefusesAnUpdateThatDiverges) {
  QuantileBalancer balancer(3, 1, {.estimator = Kind::exact, .gain = 1e300});
  const auto before = bits(balancer.biases());
  EXPECT_EQ(bits(step(balancer, matrix({{0.75f, 0.5f, 0.25f}}), 1)), before);
}

// ---- When the biases move

class EveryEstimatorOfTheBalancer : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(QuantileBalancer, EveryEstimatorOfTheBalancer,
                         ::testing::ValuesIn(all_estimators));

const auto skewed = matrix({{.9f, .5f, .1f}, {.8f, .4f, .3f}, {.7f, .6f, .2f}, {.95f, .15f, .35f}});

TEST_P(EveryEstimatorOfTheBalancer, MovesOncePerStepAtTheStep) {
  QuantileBalancer balancer(3, 1, {.estimator = GetParam()});
  const auto start = bits(balancer.biases());
  forward(balancer, skewed, 1, 0);
  EXPECT_EQ(bits(balancer.biases()), start);
  forward(balancer, skewed, 1, 1);
  EXPECT_EQ(bits(balancer.biases()), start);
  balancer.end_step(true);
  const auto moved = bits(balancer.biases());
  EXPECT_NE(moved, start);
  balancer.end_step(true);  // nothing was observed since
  EXPECT_EQ(bits(balancer.biases()), moved);
}

TEST_P(EveryEstimatorOfTheBalancer, MovesAtEachForwardWithThatCadence) {
  QuantileBalancer by_forward(3, 1, {.estimator = GetParam(), .update = UpdateCadence::forward});
  QuantileBalancer by_step(3, 1, {.estimator = GetParam()});
  for (const float shift : {0.0f, 0.05f, -0.05f}) {
    auto scores = skewed;
    for (float& s : scores.row(0)) s += shift;
    forward(by_forward, scores, 1);
    step(by_step, scores, 1);
    EXPECT_EQ(bits(by_forward.biases()), bits(by_step.biases()));
    EXPECT_EQ(by_forward.pending_tokens(), 0);
  }
  const auto last = bits(by_forward.biases());
  by_forward.end_step(true);
  by_forward.end_step(false);
  EXPECT_EQ(bits(by_forward.biases()), last);
}

TEST_P(EveryEstimatorOfTheBalancer, DropsASkippedStepWhenToldTo) {
  QuantileBalancer skipping(3, 1,
                            {.estimator = GetParam(), .on_skipped_step = SkippedStep::discard});
  QuantileBalancer plain(3, 1, {.estimator = GetParam()});
  forward(skipping, matrix({{.1f, .2f, .9f}, {.3f, .2f, .8f}}), 1);
  skipping.end_step(false);
  EXPECT_EQ(bits(skipping.biases()), bits(plain.biases()));
  EXPECT_EQ(skipping.pending_tokens(), 0);
  EXPECT_EQ(bits(step(skipping, skewed, 1)), bits(step(plain, skewed, 1)));
}

TEST_P(EveryEstimatorOfTheBalancer, PoolsASkippedStepWithTheNextWhenToldTo) {
  const auto other = matrix({{.1f, .2f, .9f}, {.3f, .2f, .8f}});
  QuantileBalancer skipping(3, 1, {.estimator = GetParam(), .on_skipped_step = SkippedStep::keep});
  QuantileBalancer pooling(3, 1, {.estimator = GetParam()});
  forward(skipping, other, 1);
  skipping.end_step(false);
  EXPECT_EQ(skipping.pending_tokens(), 2);
  EXPECT_EQ(bits(skipping.biases()), bits(std::vector<float>(3)));
  forward(pooling, other, 1);
  EXPECT_EQ(bits(step(skipping, skewed, 1)), bits(step(pooling, skewed, 1)));
}

TEST_P(EveryEstimatorOfTheBalancer, StaysToTheBitWithoutAValidToken) {
  for (const UpdateCadence cadence : {UpdateCadence::step, UpdateCadence::forward}) {
    QuantileBalancer balancer(3, 1, {.estimator = GetParam(), .update = cadence, .ema = 0.5});
    balancer.set_biases(
        std::vector<float>{0.1f, -0.0f, 12.0f});  // not centred, and not for zero tokens
    const auto before = bits(balancer.biases());
    forward(balancer, Matrix<float>(0, 3), 1);
    auto padding = oracle::route(skewed, balancer.biases(), 1);
    padding.valid.assign(4, 0);
    balancer.observe(padding.batch());
    balancer.end_step(true);
    EXPECT_EQ(bits(balancer.biases()), before);
    EXPECT_EQ(balancer.pending_tokens(), 0);
  }
}

TEST_P(EveryEstimatorOfTheBalancer, IsBlindToRowsThatAreNotValid) {
  QuantileBalancer padded(3, 1, {.estimator = GetParam()}), plain(3, 1, {.estimator = GetParam()});
  auto routed =
      oracle::route(oracle::stacked(skewed, repeated(5, {.1f, .9f, .2f})), padded.biases(), 1);
  for (std::size_t i = 4; i < 9; ++i) routed.valid[i] = 0;
  routed.scores(5, 0) = infinity;
  routed.cutoffs[6] = NAN;
  padded.observe(routed.batch());
  EXPECT_EQ(padded.pending_tokens(), 4);
  padded.end_step(true);
  EXPECT_EQ(bits(padded.biases()), bits(step(plain, skewed, 1)));
}

TEST_P(EveryEstimatorOfTheBalancer, RefusesABadBatchAndIsAsBefore) {
  QuantileBalancer balancer(3, 1, {.estimator = GetParam()});
  forward(balancer, skewed, 1);
  const StateDict before = saved(balancer);
  auto routed = oracle::route(skewed, balancer.biases(), 1);
  routed.scores(3, 2) = NAN;
  EXPECT_THROW(balancer.observe(routed.batch()), std::invalid_argument);
  EXPECT_THROW(
      balancer.observe(oracle::route(matrix({{.1f, .2f}}), std::vector<float>(2), 1).batch()),
      std::invalid_argument);
  EXPECT_EQ(saved(balancer), before);
}

TEST_P(EveryEstimatorOfTheBalancer, DropsPendingObservationsWhenBiasesAreSet) {
  const std::vector<float> given{0.5f, 0.25f, -0.75f};
  QuantileBalancer used(3, 1, {.estimator = GetParam()}), fresh(3, 1, {.estimator = GetParam()});
  forward(used, matrix({{.1f, .2f, .9f}, {.3f, .2f, .8f}}), 1);
  used.set_biases(given);
  fresh.set_biases(given);
  EXPECT_EQ(used.pending_tokens(), 0);
  EXPECT_EQ(bits(step(used, skewed, 1)), bits(step(fresh, skewed, 1)));
}

TEST_P(EveryEstimatorOfTheBalancer, ReplacesBiasesThatAreNotFinite) {
  // A forward that survives them: expert 2 is never chosen and never the cutoff.
  QuantileBalancer balancer(3, 1, {.estimator = GetParam(), .ema = 0.5});
  balancer.set_biases(std::vector<float>{0, 0, -infinity});
  for (const float b : step(balancer, skewed, 1)) EXPECT_TRUE(std::isfinite(b));
}

TEST(QuantileBalancer, RefusesAnotherNumberOfBiases) {
  QuantileBalancer balancer(3, 1, {});
  forward(balancer, skewed, 1);
  EXPECT_THROW(balancer.set_biases(std::vector<float>(2)), std::invalid_argument);
  EXPECT_EQ(balancer.pending_tokens(), 4);
}

TEST(QuantileBalancer, TakesItsOwnBiases) {
  QuantileBalancer balancer(3, 1, {});
  const auto biases = step(balancer, skewed, 1);
  balancer.set_biases(balancer.biases());
  EXPECT_EQ(bits(balancer.biases()), bits(biases));
}

// ---- Laws of the update

QuantileSettings drawn_settings() {
  QuantileSettings settings;
  settings.estimator =
      *rc::gen::elementOf(std::vector(std::begin(all_estimators), std::end(all_estimators)));
  settings.bins = *rc::gen::inRange<std::size_t>(2, 40);
  settings.update = *rc::gen::element(UpdateCadence::step, UpdateCadence::forward);
  settings.on_skipped_step = *rc::gen::element(SkippedStep::discard, SkippedStep::keep);
  settings.ema = *rc::gen::element(0.0, 0.5);
  if (settings.ema == 0.0) settings.gain = *rc::gen::element(1.0, 0.5, 2.0);
  return settings;
}

RC_GTEST_PROP(QuantileBalancer, CentresTheBiases, ()) {
  const auto c = oracle::drawn_routing_case();
  QuantileBalancer balancer(c.experts(), c.top_k, drawn_settings());
  balancer.set_biases(c.biases);
  const auto biases = step(balancer, c.scores, c.top_k);
  double sum = 0, largest = 0, largest_before = 1;
  for (const float b : biases) {
    sum += static_cast<double>(b);
    largest = std::max(largest, std::abs(static_cast<double>(b)));
  }
  for (const float b : c.biases) {
    largest_before = std::max(largest_before, std::abs(static_cast<double>(b)));
  }
  // Each bias is rounded to fp32 once; the mean that was taken away is a sum in double of values that a
  // common offset may have made much larger than what is left of them.
  const double rounding = largest * 0x1p-24 + largest_before * 0x1p-48;
  RC_ASSERT(std::abs(sum) <= static_cast<double>(c.experts()) * rounding);
}

// A constant on all biases selects the same and is centred away. E a power of two keeps the means
// exact.
RC_GTEST_PROP(QuantileBalancer, ForgetsAConstantOnAllBiases, ()) {
  const auto kind = *rc::gen::element(Kind::exact, Kind::microbatch_mean, Kind::chunk_mean);
  const auto c = oracle::drawn_routing_case();
  RC_PRE(c.experts() == 2 || c.experts() == 4 || c.experts() == 8);
  auto shifted = c.biases;
  for (float& b : shifted) b += 3.5f;
  QuantileBalancer a(c.experts(), c.top_k, {.estimator = kind}),
      b(c.experts(), c.top_k, {.estimator = kind});
  a.set_biases(c.biases);
  b.set_biases(shifted);
  RC_ASSERT(bits(step(a, c.scores, c.top_k)) == bits(step(b, c.scores, c.top_k)));
}

// L(alpha, beta) with b = -beta and alpha the (k+1)-th largest of s + b (algorithms.md 2.1), in
// double.
double dual_objective(const Matrix<float>& scores, std::span<const float> biases,
                      std::size_t top_k) {
  const double q = static_cast<double>(scores.rows() * top_k) / static_cast<double>(scores.cols());
  double objective = 0;
  for (const float b : biases) objective -= q * static_cast<double>(b);
  for (std::size_t i = 0; i < scores.rows(); ++i) {
    std::vector<double> biased(scores.cols());
    for (std::size_t j = 0; j < biased.size(); ++j) {
      biased[j] = static_cast<double>(scores(i, j)) + static_cast<double>(biases[j]);
    }
    const double cutoff = biased[static_cast<std::size_t>(oracle::ranking<double>(biased)[top_k])];
    objective += static_cast<double>(top_k) * cutoff;
    for (const double value : biased) objective += std::max(0.0, value - cutoff);
  }
  return objective;
}

RC_GTEST_PROP(QuantileBalancer, NeverRaisesTheDualObjectiveOnAFixedBatch, ()) {
  const auto c = oracle::drawn_routing_case();
  QuantileBalancer balancer(c.experts(), c.top_k, {.estimator = Kind::exact});
  balancer.set_biases(c.biases);
  double last = dual_objective(c.scores, c.biases, c.top_k);
  const double rounding = 1e-6 * static_cast<double>(c.tokens() * c.experts());
  for (int t = 0; t < 6; ++t) {
    const double next = dual_objective(c.scores, step(balancer, c.scores, c.top_k), c.top_k);
    RC_ASSERT(next <= last + rounding);
    last = next;
  }
}

// Balanced scores of the whole batch can never exceed the dual (weak duality); here from above by a
// choice that gives every expert its share: tokens in blocks, each block to its own k experts.
TEST(QuantileBalancer, KeepsTheDualAboveABalancedChoice) {
  QuantileBalancer balancer(3, 1, {.estimator = Kind::exact});
  const auto scores = matrix({{.9f, .5f, .1f}, {.8f, .4f, .3f}, {.7f, .6f, .2f}});
  const double balanced = 0.9 + 0.6 + 0.3;  // the best of the six assignments
  for (int t = 0; t < 5; ++t) {
    EXPECT_GE(dual_objective(scores, balancer.biases(), 1), balanced - 1e-6);
    step(balancer, scores, 1);
  }
}

TEST_P(EveryEstimatorOfTheBalancer, BringsDeadExpertsBack) {
  // 64 tokens, 8 experts, k = 2; two experts are better than all others on every token.
  Matrix<float> scores(64, 8);
  for (std::size_t i = 0; i < 64; ++i) {
    for (std::size_t j = 0; j < 8; ++j) {
      scores(i, j) =
          static_cast<float>((i * 37 + j * 101 + i * j * 13) % 97) / 400.0f + (j < 2 ? 0.6f : 0.1f);
    }
  }
  QuantileBalancer balancer(8, 2, {.estimator = GetParam()});
  EXPECT_EQ(loads_under(scores, balancer.biases(), 2), (Loads{64, 64, 0, 0, 0, 0, 0, 0}));
  for (int t = 0; t < 3; ++t) step(balancer, scores, 2);
  for (const std::int64_t load : loads_under(scores, balancer.biases(), 2)) {
    EXPECT_GE(load, 8);  // half the share q = 16
    EXPECT_LE(load, 24);
  }
}

// ---- State

/// Something that may happen between two saves.
struct Event {
  int kind;  // 0 to 2: a forward, 3: a step, 4: a skipped step
  Matrix<float> scores;
  std::size_t rank;
};

void apply(Balancer& balancer, const Event& event, std::size_t top_k) {
  if (event.kind <= 2) {
    forward(balancer, event.scores, top_k, event.rank);
  } else {
    balancer.end_step(event.kind == 3);
  }
}

RC_GTEST_PROP(QuantileBalancer, ContinuesToTheBitFromItsStateAtAnyPoint, ()) {
  const auto experts = *rc::gen::inRange<std::size_t>(2, 6);
  const auto top_k = *rc::gen::inRange<std::size_t>(1, experts);
  const QuantileSettings settings = drawn_settings();
  std::vector<Event> events;
  for (int e = 0; e < 10; ++e) {
    const auto tokens = *rc::gen::inRange<std::size_t>(0, 5);
    Matrix<float> scores(tokens, experts);
    const auto drawn =
        oracle::drawn_multiples(tokens * experts, 0, 1000, 0.003f);  // past 1: clamped
    std::copy(drawn.begin(), drawn.end(), scores.values().begin());
    events.push_back({*rc::gen::inRange(0, 5), scores, *rc::gen::inRange<std::size_t>(0, 3)});
  }
  const auto restart = *rc::gen::inRange<std::size_t>(0, events.size());

  QuantileBalancer uninterrupted(experts, top_k, settings), crashed(experts, top_k, settings);
  QuantileBalancer restarted(experts, top_k, settings);
  restarted.observe(oracle::route(Matrix<float>(1, experts), restarted.biases(), top_k).batch());
  for (std::size_t e = 0; e < events.size(); ++e) {
    if (e == restart) {
      const auto bytes = saved(crashed).to_bytes();
      restarted.load(StateDict::from_bytes(bytes), "balancer.");
      RC_ASSERT(saved(restarted) == saved(crashed));
    }
    apply(uninterrupted, events[e], top_k);
    apply(e < restart ? crashed : restarted, events[e], top_k);
  }
  RC_ASSERT(saved(restarted) == saved(uninterrupted));
  RC_ASSERT(bits(restarted.biases()) == bits(uninterrupted.biases()));
  RC_ASSERT(restarted.clamped() == uninterrupted.clamped());
}

TEST_P(EveryEstimatorOfTheBalancer, RefusesAStateThatIsNotItsOwnAndIsAsBefore) {
  QuantileBalancer balancer(3, 1, {.estimator = GetParam()});
  forward(balancer, skewed, 1);
  const StateDict before = saved(balancer);

  EXPECT_THROW(balancer.load(before, "elsewhere."), std::out_of_range);
  const auto refused = [&](const StateDict& state) {
    EXPECT_ANY_THROW(balancer.load(state, "balancer."));
    EXPECT_EQ(saved(balancer), before);
  };
  for (const Kind kind : all_estimators) {
    if (kind != GetParam()) refused(saved(QuantileBalancer(3, 1, {.estimator = kind})));
  }
  QuantileBalancer wider(4, 1, {.estimator = GetParam()});
  refused(saved(wider));
  StateDict truncated;
  truncated.put("balancer.biases", std::vector<float>{1, 2, 3});
  refused(truncated);
}

TEST(QuantileBalancer, RefusesPendingObservationsWhenEveryForwardUsesItsOwn) {
  QuantileBalancer by_step(3, 1, {}), by_forward(3, 1, {.update = UpdateCadence::forward});
  by_forward.load(saved(by_step), "balancer.");
  forward(by_step, skewed, 1);
  EXPECT_THROW(by_forward.load(saved(by_step), "balancer."), std::invalid_argument);
}

TEST(QuantileBalancer, CountsNothingAsClampedForScoresBetweenZeroAndOne) {
  QuantileBalancer balancer(3, 1, {.bins = 3});
  for (int t = 0; t < 5; ++t)
    step(balancer, matrix({{1, 0, 0}, {1, 1, 0}, {0, 1, 1}, {1, 0.5f, 0}}), 1);
  EXPECT_EQ(balancer.clamped(), ClampedCounts{});
  step(balancer, matrix({{9, 1, -9}}), 1);
  EXPECT_NE(balancer.clamped(), ClampedCounts{});
}

}  // namespace
}  // namespace ballast
