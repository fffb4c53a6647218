#include <gtest/gtest.h>

#include <limits>

#include "core/assignment/expert_choice.h"
#include "core/balancers/quantile_balancer.h"
#include "tests/core/support/bits.h"
#include "tests/core/support/matrices.h"
#include "tests/core/support/quantile_cases.h"
#include "tests/core/support/random_matrix.h"

/// Quantile balancing of sequences, with stale estimates, and without cutoffs.
namespace ballast {
namespace {

using oracle::bits;
using oracle::matrix;
using Kind = QuantileEstimatorKind;

Matrix<float> some_scores(std::size_t tokens, std::uint64_t seed) {
  auto scores = test::random_matrix<float>(tokens, 4, seed, 0.1);
  for (float& s : scores.values()) s += 0.5f;
  return scores;
}

Matrix<float> rows(const Matrix<float>& scores, std::size_t first, std::size_t count) {
  Matrix<float> out(count, scores.cols());
  std::ranges::copy(scores.view().block(first, count).values(), out.values().begin());
  return out;
}

void observe(Balancer& balancer, const Matrix<float>& scores, std::size_t sequence_length, std::size_t rank = 0,
             std::vector<std::uint8_t> valid = {}) {
  const auto routed = oracle::route(scores, balancer.biases(), 2);
  RoutedBatch batch = routed.batch();
  if (!valid.empty()) batch.valid = valid;
  batch.rank = rank;
  batch.sequence_length = sequence_length;
  balancer.observe(batch);
}

// ---- Sequences

TEST(SequenceMean, IsTheMeanOfTheExactEstimatesOfSequences) {
  const auto scores = some_scores(12, 1);
  QuantileBalancer by_sequence(4, 2, {.estimator = Kind::sequence_mean});
  QuantileBalancer by_microbatch(4, 2, {.estimator = Kind::microbatch_mean});
  observe(by_sequence, scores, 4);
  for (std::size_t first = 0; first < 12; first += 4) observe(by_microbatch, rows(scores, first, 4), 0);
  by_sequence.end_step(true);
  by_microbatch.end_step(true);
  EXPECT_EQ(bits(by_sequence.biases()), bits(by_microbatch.biases()));
}

TEST(SequenceMean, DoesNotDependOnHowTheStepIsSplit) {
  const auto scores = some_scores(12, 2);
  QuantileBalancer whole(4, 2, {.estimator = Kind::sequence_mean}), split(4, 2, {.estimator = Kind::sequence_mean});
  observe(whole, scores, 3);
  observe(split, rows(scores, 0, 6), 3, 0);
  observe(split, rows(scores, 6, 3), 3, 0);
  observe(split, rows(scores, 9, 3), 3, 1);
  whole.end_step(true);
  split.end_step(true);
  EXPECT_EQ(bits(whole.biases()), bits(split.biases()));
}

TEST(SequenceMean, LeavesPaddingAndEmptySequencesOut) {
  const auto scores = some_scores(9, 3);
  QuantileBalancer padded(4, 2, {.estimator = Kind::sequence_mean}), plain(4, 2, {.estimator = Kind::sequence_mean});
  observe(padded, scores, 3, 0, {1, 1, 0, 0, 0, 0, 1, 1, 0});
  observe(plain, oracle::stacked(rows(scores, 0, 2), rows(scores, 6, 2)), 2);
  padded.end_step(true);
  plain.end_step(true);
  EXPECT_EQ(bits(padded.biases()), bits(plain.biases()));
}

TEST(SequenceMean, RefusesRowsThatAreNoWholeSequences) {
  QuantileBalancer balancer(4, 2, {.estimator = Kind::sequence_mean});
  EXPECT_THROW(observe(balancer, some_scores(8, 4), 3), std::invalid_argument);
  EXPECT_EQ(balancer.pending_tokens(), 0);
}

// ---- Stale estimates

std::vector<std::vector<std::uint32_t>> biases_after_steps(Balancer& balancer, std::size_t first, std::size_t end) {
  std::vector<std::vector<std::uint32_t>> all;
  for (std::size_t step = first; step < end; ++step) {
    observe(balancer, some_scores(16, step), 0);
    balancer.end_step(true);
    all.push_back(bits(balancer.biases()));
  }
  return all;
}

constexpr QuantileSettings two_old{.estimator = Kind::exact, .stale_updates = 2};

TEST(StaleQuantiles, MoveNothingAtFirst) {
  QuantileBalancer stale(4, 2, two_old), fresh(4, 2, {.estimator = Kind::exact});
  const auto of_stale = biases_after_steps(stale, 0, 3);
  const auto zeros = bits(std::vector<float>(4));
  EXPECT_EQ(of_stale[0], zeros);
  EXPECT_EQ(of_stale[1], zeros);
  EXPECT_EQ(of_stale[2], biases_after_steps(fresh, 0, 1)[0]);
}

TEST(StaleQuantiles, AreRestoredWithTheirWaitingEstimates) {
  QuantileBalancer original(4, 2, two_old), restored(4, 2, two_old);
  biases_after_steps(original, 0, 4);
  StateDict state;
  original.save(state, "layer.");
  restored.load(StateDict::from_bytes(state.to_bytes()), "layer.");
  EXPECT_EQ(biases_after_steps(restored, 4, 9), biases_after_steps(original, 4, 9));
}

TEST(StaleQuantiles, RefuseWaitingEstimatesThatTheyCannotHave) {
  QuantileBalancer balancer(4, 2, two_old);
  StateDict state;
  balancer.save(state, "");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& waiting : {std::vector<double>(3), std::vector<double>(12), std::vector<double>(4, nan)}) {
    state.put("waiting", waiting);
    EXPECT_THROW(balancer.load(state, ""), std::invalid_argument);
  }
}

TEST(StaleQuantiles, SetBiasesDropsWaitingEstimates) {
  QuantileBalancer balancer(4, 2, two_old);
  biases_after_steps(balancer, 0, 2);
  const std::vector<float> given{1, 2, 3, 4};
  balancer.set_biases(given);
  EXPECT_EQ(biases_after_steps(balancer, 2, 4).back(), bits(given));
}

// ---- Dynamic activation

constexpr QuantileSettings dynamic{.estimator = Kind::exact, .per_expert = true};

/// What a router that activates by threshold shows: no cutoffs, any number of experts a token.
void observe_thresholds(Balancer& balancer, const Matrix<float>& scores) {
  const auto indices = choose_above_threshold<float>(scores, balancer.biases());
  balancer.observe({scores.view(), {}, indices.view(), {}});
  balancer.end_step(true);
}

// m = 4, k = 1, E = 2: q = 2, so the third largest of each column.
TEST(DynamicActivation, SetsTheThresholdOfEachExpertByItself) {
  QuantileBalancer balancer(2, 1, dynamic);
  observe_thresholds(balancer, matrix({{.9f, .1f}, {.8f, .2f}, {.7f, .3f}, {.6f, .4f}}));
  EXPECT_EQ(bits(balancer.biases()), bits(std::vector<float>{-.7f, -.2f}));
}

TEST(DynamicActivation, ActivatesKOnAverageOnTheSameBatch) {
  QuantileBalancer balancer(4, 2, dynamic);
  const auto scores = some_scores(40, 7);
  observe_thresholds(balancer, scores);
  const auto indices = choose_above_threshold<float>(scores, balancer.biases());
  std::vector<std::int64_t> loads(4);
  for (const std::int32_t j : indices.values()) {
    if (j >= 0) ++loads[static_cast<std::size_t>(j)];
  }
  EXPECT_EQ(loads, std::vector<std::int64_t>(4, 20));
}

TEST(DynamicActivation, SmoothsByItsMovingAverage) {
  QuantileBalancer balancer(2, 1, {.estimator = Kind::exact, .ema = 0.75, .per_expert = true});
  balancer.set_biases(std::vector<float>{-0.5f, -0.5f});
  observe_thresholds(balancer, matrix({{.9f, .1f}, {.8f, .2f}, {.7f, .3f}, {.6f, .4f}}));
  EXPECT_NEAR(balancer.biases()[0], -0.55f, 1e-7f);
  EXPECT_NEAR(balancer.biases()[1], -0.425f, 1e-7f);
}

}  // namespace
}  // namespace ballast
