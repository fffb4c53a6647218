#include "sim/scenario/memory.h"

#include <gtest/gtest.h>

#include <limits>

#include "sim/input_error.h"

namespace ballast::sim {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

std::uint64_t term(const Scenario& scenario, const std::string& name) {
  for (const MemoryTerm& each : estimate_memory(scenario).terms) {
    if (each.name == name) return each.bytes;
  }
  ADD_FAILURE() << name;
  return 0;
}

std::string refusal(const std::vector<Scenario>& runs, std::uint64_t limit) {
  try {
    check_memory(runs, "big.json", limit);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

/// Counted by hand for a model of one layer: hidden 4, latent 3, 5 experts of inner 2, one shared
/// of inner 6, vocabulary 7.
TEST(MemoryEstimate, CountsEveryParameterFourTimes) {
  Scenario s;
  s.model.moe = {.router = {.hidden = 4, .routed_experts = 5},
                 .latent = 3,
                 .expert_inner = 2,
                 .shared_experts = 1,
                 .shared_inner = 6};
  s.tokens.vocabulary = 7;
  const std::uint64_t routed = 5 * (3 * 3 * 2), shared = 3 * 4 * 6, router = 5 * 4,
                      latent = 2 * 3 * 4;
  const std::uint64_t norms = 3 + 4 + 4, embedding_and_output = 2 * 7 * 4;
  EXPECT_EQ(term(s, "parameters, gradients and moments"),
            16 * (routed + shared + router + latent + norms + embedding_and_output));
}

TEST(MemoryEstimate, CountsWhatEachEstimatorKeeps) {
  Scenario s;
  s.model.layers = 3;
  s.training.ranks = 2;
  s.training.micro_batches = 5;
  s.training.sequences = 7;
  const std::string name = "pending observations of the balancer";
  EXPECT_EQ(term(s, name), 3u * 32 * 1000 * (8 + 2));
  s.balancer.quantile.estimator = QuantileEstimatorKind::exact;
  EXPECT_EQ(term(s, name), 3u * 32 * 2 * 5 * 7 * 64 * 4);
  s.balancer.kind = BalancerKind::none;
  EXPECT_EQ(term(s, name), 0u);
}

TEST(MemoryEstimate, HoldsFewLayersOfRoutersAloneUnlessASkippedStepIsKept) {
  Scenario s;
  s.mode = Mode::router_only;
  s.model.layers = 92;
  const std::string name = "pending observations of the balancer";
  EXPECT_EQ(term(s, name), 8u * 32 * 1000 * (8 + 2));
  s.training.overflow_steps = {3};
  EXPECT_EQ(term(s, name), 8u * 32 * 1000 * (8 + 2));
  s.balancer.quantile.on_skipped_step = SkippedStep::keep;
  EXPECT_EQ(term(s, name), 92u * 32 * 1000 * (8 + 2));
}

TEST(MemoryText, SaysHowMuchAndOfWhat) {
  Scenario s;
  s.mode = Mode::router_only;
  s.model.moe.router.routed_experts = 1024;
  s.model.moe.router.top_k = 1;
  EXPECT_EQ(memory_text({&s, 1}),
            "about 13 MiB, most of it for pending observations of the balancer (10 MiB)");
}

TEST(MemoryCheck, LetsTheDefaultScenarioPass) {
  EXPECT_EQ(refusal({Scenario{}}, gib / 16), "accepted");
}

TEST(MemoryCheck, NamesTheEstimateAndItsLargestTerm) {
  Scenario s;
  s.model.moe.router.hidden = 8192;
  s.model.moe.shared_inner = 16384;
  s.model.layers = 10;
  EXPECT_EQ(
      refusal({s}, 4 * gib),
      "big.json: the scenario does not fit into memory: it would take about 63.3 GiB, most of it "
      "for "
      "parameters, gradients and moments (60.2 GiB), and the limit is 4.0 GiB; make the model, "
      "the batch or the run smaller");
}

TEST(MemoryCheck, AddsUpVariantsThatRunSideBySide) {
  const std::uint64_t one = estimate_memory(Scenario{}).bytes();
  EXPECT_EQ(refusal({Scenario{}, Scenario{}}, 2 * one), "accepted");
  EXPECT_NE(refusal({Scenario{}, Scenario{}}, 2 * one - 1), "accepted");
}

TEST(MemoryCheck, RefusesSizesThatOverflowWhateverTheLimit) {
  Scenario s;
  s.model.moe.router.hidden = 1'000'000'000;
  s.model.moe.router.routed_experts = 1'000'000'000;
  s.model.layers = 100'000;
  EXPECT_EQ(
      refusal({s}, std::numeric_limits<std::uint64_t>::max()),
      "big.json: the scenario does not fit into memory: it would take about more than 2^64 bytes, "
      "most of it for parameters, gradients and moments (more than 2^64 bytes), and the limit is "
      "more than 2^64 bytes; make the model, the batch or the run smaller");
}

TEST(MemoryCheck, RefusesRunsWhoseRecordsWouldFillTheMemory) {
  Scenario s;
  s.training.steps = 1'000'000'000;
  EXPECT_NE(refusal({s}, 64 * gib).find("most of it for records of the steps"), std::string::npos);
}

TEST(MemoryCheck, HasALimitBelowWhatTheMachineHas) {
  EXPECT_GT(default_memory_limit_bytes(), gib / 4);
  EXPECT_LT(default_memory_limit_bytes(), std::uint64_t{1} << 50);
}

}  // namespace
}  // namespace ballast::sim
