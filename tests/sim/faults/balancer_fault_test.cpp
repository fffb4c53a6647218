#include "sim/faults/balancer_fault.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/assignment/chosen_experts.h"
#include "core/balancers/quantile_balancer.h"
#include "core/balancers/sign_balancer.h"
#include "core/model/selection.h"
#include "core/random/distributions.h"

namespace ballast::sim {
namespace {

constexpr std::size_t experts = 8, top_k = 2, tokens = 128;

/// Skewed scores that are the same for every balancer.
Matrix<float> scores_of(std::uint64_t step) {
  Stream stream = Stream(4).child(step);
  Matrix<float> scores(tokens, experts);
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t j = 0; j < experts; ++j) {
      scores(t, j) = static_cast<float>(0.6 * uniform(stream) + 0.05 * static_cast<double>(j));
    }
  }
  return scores;
}

void run_step(Balancer& balancer, std::uint64_t step, std::span<const std::uint8_t> valid = {}) {
  const Matrix<float> scores = scores_of(step);
  const auto selection = select_top_k<float>(scores, balancer.biases(), top_k);
  balancer.observe({scores, selection.cutoffs, selection.indices, valid, 0});
  balancer.end_step(true);
}

std::unique_ptr<Balancer> sound() {
  return std::make_unique<QuantileBalancer>(experts, top_k, QuantileSettings{});
}

std::vector<float> biases(const Balancer& balancer) {
  return {balancer.biases().begin(), balancer.biases().end()};
}

TEST(BalancerFault, NoneChangesNothing) {
  auto balancer = sound(), other = with_fault(sound(), BalancerFault::none);
  for (std::uint64_t step = 0; step < 3; ++step) {
    run_step(*balancer, step);
    run_step(*other, step);
  }
  EXPECT_EQ(biases(*other), biases(*balancer));
}

TEST(BalancerFault, IncrementAddsWhatShouldBeSet) {
  auto faulty = with_fault(sound(), BalancerFault::increment);
  auto balancer = sound();
  run_step(*faulty, 0);
  const auto first = biases(*faulty);
  balancer->set_biases(first);
  run_step(*balancer, 1);
  run_step(*faulty, 1);
  for (std::size_t j = 0; j < experts; ++j) {
    EXPECT_EQ(faulty->biases()[j], balancer->biases()[j] + first[j]);
  }
}

TEST(BalancerFault, Bf16BiasesHaveEightBits) {
  auto faulty = with_fault(sound(), BalancerFault::bf16_biases);
  auto balancer = sound();
  run_step(*faulty, 0);
  run_step(*balancer, 0);
  for (std::size_t j = 0; j < experts; ++j) {
    const float exact = balancer->biases()[j], rounded = faulty->biases()[j];
    EXPECT_NEAR(rounded, exact, std::abs(exact) / 256);
    int exponent = 0;
    const float mantissa = std::frexp(rounded, &exponent) * 256;
    EXPECT_EQ(mantissa, std::round(mantissa));
  }
}

TEST(BalancerFault, CountedPaddingMovesTheBiases) {
  std::vector<std::uint8_t> valid(tokens, 1);
  for (std::size_t t = 0; t < tokens; ++t) valid[t] = t % 2;
  auto faulty = with_fault(sound(), BalancerFault::padding_counted);
  auto all = sound(), masked = sound();
  run_step(*faulty, 0, valid);
  run_step(*all, 0);
  run_step(*masked, 0, valid);
  EXPECT_EQ(biases(*faulty), biases(*all));
  EXPECT_NE(biases(*faulty), biases(*masked));
}

TEST(BalancerFault, LostAtRestartComesBackWithZeros) {
  auto faulty = with_fault(sound(), BalancerFault::lost_at_restart);
  run_step(*faulty, 0);
  EXPECT_NE(biases(*faulty), std::vector<float>(experts, 0.0f));
  StateDict state;
  faulty->save(state, "b.");
  faulty->load(state, "b.");
  EXPECT_EQ(biases(*faulty), std::vector<float>(experts, 0.0f));
}

TEST(BalancerFault, BiasedMarginDiffersFromTheSecondStepOn) {
  auto faulty = with_fault(sound(), BalancerFault::biased_margin);
  auto balancer = sound();
  run_step(*faulty, 0);
  run_step(*balancer, 0);
  EXPECT_EQ(biases(*faulty), biases(*balancer)) << "zero biases make no difference";
  run_step(*faulty, 1);
  run_step(*balancer, 1);
  EXPECT_NE(biases(*faulty), biases(*balancer));
}

/// A step of top-1 routing in which expert j gets loads[j] tokens, in `forwards` forwards of equal
/// size.
void run_loads(Balancer& balancer, const std::vector<std::size_t>& loads,
               std::size_t forwards = 1) {
  for (std::size_t forward = 0; forward < forwards; ++forward) {
    std::vector<std::int32_t> chosen;
    for (std::size_t j = 0; j < loads.size(); ++j) {
      chosen.insert(chosen.end(), loads[j] / forwards, static_cast<std::int32_t>(j));
    }
    const Matrix<float> scores(chosen.size(), loads.size(), 0.5f);
    const std::vector<float> cutoffs(chosen.size(), 0.5f);
    balancer.observe(
        {scores, cutoffs, MatrixView<const std::int32_t>(chosen.data(), chosen.size(), 1), {}, 0});
  }
  balancer.end_step(true);
}

std::unique_ptr<Balancer> counting(BalancerFault fault, LoadBiasSettings loads = {}) {
  SignSettings settings{.rate = 0.125, .loads = loads};
  return with_fault(std::make_unique<SignBalancer>(4, settings), fault);
}

TEST(BalancerFault, Bf16CountsAreExactUpTo256) {
  const std::vector<std::size_t> loads = {256, 255, 2, 120};
  auto faulty = counting(BalancerFault::bf16_counts), sound = counting(BalancerFault::none);
  run_loads(*faulty, loads);
  run_loads(*sound, loads);
  EXPECT_EQ(biases(*faulty), biases(*sound));
}

TEST(BalancerFault, Bf16CountsAreAllTheSameFrom256On) {
  for (const std::size_t forwards : {1, 2, 4}) {
    auto faulty = counting(BalancerFault::bf16_counts), sound = counting(BalancerFault::none);
    run_loads(*faulty, {256, 260, 2000, 400}, forwards);
    run_loads(*sound, {256, 260, 2000, 400}, forwards);
    EXPECT_EQ(biases(*faulty), std::vector<float>(4, 0.0f)) << forwards << " forwards";
    EXPECT_EQ(biases(*sound), (std::vector<float>{0.125f, 0.125f, -0.125f, 0.125f}));
  }
}

TEST(BalancerFault, Bf16CountsMisleadASignBalancer) {
  auto faulty = counting(BalancerFault::bf16_counts), sound = counting(BalancerFault::none);
  run_loads(*faulty, {1000, 300, 280, 100});  // read as 256, 256, 256, 100
  run_loads(*sound, {1000, 300, 280, 100});   // of a mean of 420
  EXPECT_EQ(biases(*faulty), (std::vector<float>{-0.125f, -0.125f, -0.125f, 0.125f}));
  EXPECT_EQ(biases(*sound), (std::vector<float>{-0.125f, 0.125f, 0.125f, 0.125f}));
}

TEST(BalancerFault, Bf16CountsBeginAnewAtEachStep) {
  auto faulty = counting(BalancerFault::bf16_counts);
  run_loads(*faulty, {300, 300, 300, 300});
  run_loads(*faulty, {10, 30, 10, 10});
  EXPECT_EQ(biases(*faulty), (std::vector<float>{0.125f, -0.125f, 0.125f, 0.125f}));
}

TEST(BalancerFault, Bf16CountsLeaveOutPaddingAndCountWhatWasKept) {
  auto faulty = counting(BalancerFault::bf16_counts, {.counted = CountedLoads::kept});
  const std::vector<std::int32_t> chosen = {0, 0, 0, 1, 2, 3, 3};
  const std::vector<std::int32_t> kept = {0, no_expert, no_expert, 1, 2, 3, 3};
  const std::vector<std::uint8_t> valid = {1, 1, 1, 1, 1, 1, 0};
  const Matrix<float> scores(7, 4, 0.5f);
  const std::vector<float> cutoffs(7, 0.5f);
  faulty->observe({scores, cutoffs, MatrixView<const std::int32_t>(chosen.data(), 7, 1), valid, 0,
                   0, MatrixView<const std::int32_t>(kept.data(), 7, 1)});
  faulty->end_step(true);
  EXPECT_EQ(biases(*faulty), std::vector<float>(4, 0.0f)) << "one token was kept by each";
}

TEST(BalancerFault, Bf16CountsNeedABalancerThatCounts) {
  EXPECT_THROW(with_fault(sound(), BalancerFault::bf16_counts), std::invalid_argument);
}

}  // namespace
}  // namespace ballast::sim
