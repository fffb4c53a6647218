#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <string>

#include "core/balancers/no_balancer.h"
#include "core/model/language_model.h"
#include "core/random/stream.h"
#include "sim/scores/score_source.h"
#include "sim/simulation/records.h"
#include "tests/sim/support/small_scenario.h"

/// Whole runs of routers alone, without balancing: the skew that is measured is the one asked for.
/// The parts of it are measured in tests/sim/scores and tests/sim/tokens.
namespace ballast::sim {
namespace {

Scenario routers(std::size_t experts, std::size_t top_k, std::size_t tokens) {
  Scenario scenario;
  scenario.mode = Mode::router_only;
  scenario.model.moe.router.routed_experts = experts;
  scenario.model.moe.router.top_k = top_k;
  scenario.balancer.kind = BalancerKind::none;
  scenario.tokens.sequence_length = std::min<std::size_t>(tokens, 100);
  scenario.training.sequences = tokens / scenario.tokens.sequence_length;
  scenario.training.steps = 1;
  return scenario;
}

using Shares = std::vector<double>;

Shares shares_at(const Simulation& run, std::size_t step) {
  const auto& loads = run.steps()[step - 1].loads[0];
  const double sum = std::accumulate(loads.begin(), loads.end(), 0.0);
  Shares shares;
  for (const std::int64_t load : loads) shares.push_back(static_cast<double>(load) / sum);
  return shares;
}

TEST(MeasuredSkew, ADomainShiftHappensAtItsStepAtOnceOrSlowly) {
  Scenario scenario = routers(64, 8, 8000);
  scenario.scores.sigma = 1.0;
  scenario.training.steps = 9;
  const auto set = std::map<std::string, std::string>{{"scores.shift", "0.4"}};
  scenario.schedule = {{.from = 4, .over = 0, .set = set}};
  const auto abrupt = test::simulated(scenario);
  const auto moved = [](const Simulation& run, std::size_t step) {
    return total_variation(shares_at(run, 1), shares_at(run, step));
  };
  // Of chance alone two samples differ by nearly 0.02.
  EXPECT_LT(moved(*abrupt, 3), 0.03);
  for (const std::size_t step : {4u, 5u, 9u}) EXPECT_NEAR(moved(*abrupt, step), 0.4, 0.03) << step;

  scenario.scores.shift = 0.4;
  scenario.scores.shift_weight = 0.0;
  scenario.schedule = {{.from = 2, .over = 3, .set = {{"scores.shift_weight", "1.0"}}}};
  const auto slow = test::simulated(scenario);
  for (const std::size_t step : {2u, 3u, 4u, 5u, 9u}) {
    const double way = std::min(1.0, static_cast<double>(step - 1) / 4.0);
    EXPECT_NEAR(moved(*slow, step), 0.4 * way, 0.03) << step;
  }
}

TEST(MeasuredSkew, AlignedTokensAllGoToTheirExpert) {
  Scenario scenario = routers(32, 2, 20'000);
  scenario.scores = {.preference = PreferenceLaw::uniform,
                     .aligned_share = 0.3,
                     .aligned_expert = 5,
                     .aligned_by = 50.0};
  const double share = 2.0 * shares_at(*test::simulated(scenario), 1)[5];
  const double wanted = 0.3 + 0.7 * 2.0 / 32.0;
  EXPECT_NEAR(share, wanted, 5 * std::sqrt(wanted * (1 - wanted) / 20'000));
}

TEST(MeasuredSkew, IdenticalTokensAndASynchronisedStartReachTheLargestViolation) {
  Scenario scenario = routers(60, 4, 25);
  scenario.scores.token_driven = 1.0;
  scenario.tokens.sequence_length = 1;
  scenario.training.sequences = 25;
  scenario.training.steps = 3;
  scenario.tokens.synchronised_steps = 2;
  const auto start = test::simulated(scenario);
  const auto violation = [](const Simulation& run, std::size_t step) {
    return run.steps()[step - 1].figures.at("e_max_violation:mean");
  };
  // All tokens on the same 4 of 60: 60 / 4 - 1.
  EXPECT_EQ(violation(*start, 1), 14.0);
  EXPECT_EQ(violation(*start, 2), 14.0);
  EXPECT_LT(violation(*start, 3), 14.0);
  scenario.tokens.synchronised_steps = 0;
  scenario.tokens.source = TokenSourceKind::constant;
  const auto identical = test::simulated(scenario);
  for (const std::size_t step : {1u, 2u, 3u}) EXPECT_EQ(violation(*identical, step), 14.0);
}

/// Max violation of small batches under a router without any preference, as an independent program
/// drew it beside real recordings: Qwen's 60 experts, top-4, and Mixtral's 8, top-2.
TEST(MeasuredSkew, SmallBatchesAreAsUnevenAsChanceMakesThem) {
  struct Case {
    std::size_t experts, top_k, tokens;
    double violation;
  };
  for (const Case& c : {Case{60, 4, 16, 2.66}, Case{60, 4, 64, 1.22}, Case{60, 4, 256, 0.56},
                        Case{8, 2, 8, 0.98}, Case{8, 2, 64, 0.35}}) {
    Scenario scenario = routers(c.experts, c.top_k, 1);
    scenario.scores.preference = PreferenceLaw::uniform;
    scenario.tokens.sequence_length = c.tokens;
    scenario.training.steps = 400;
    const auto run = test::simulated(scenario);
    double sum = 0.0, squares = 0.0;
    for (const StepRecord& step : run->steps()) {
      const double violation = step.figures.at("e_max_violation:mean");
      sum += violation;
      squares += violation * violation;
    }
    const double mean = sum / 400, error = std::sqrt((squares / 400 - mean * mean) / 400);
    // Theirs is a mean of draws too, in three digits.
    EXPECT_NEAR(mean, c.violation, 5 * error + 0.015) << c.experts << " " << c.tokens;
  }
}

/// "Expert j is chosen" correlates along a sequence as memory^d.
TEST(MeasuredSkew, ChoicesCorrelateAlongASequenceAsTheMemorySays) {
  constexpr std::size_t length = 500, sequences = 40, experts = 16, top_k = 2;
  constexpr double memory = 0.3;
  TokenBatch batch{
      .sequences = sequences, .length = length, .inputs = {}, .targets = {}, .valid = {}};
  batch.inputs.assign(sequences * length, 0);
  const ScoreSettings settings{.sigma = 0.5, .sequence_memory = memory};
  const TokenRows rows = token_rows(settings, batch, {}, 5);
  ScoreSource source(1, experts, top_k, 1, 5);
  source.prepare(settings, 0, serial_executor());
  Matrix<float> logits(sequences * length, experts);
  source.draw(0, 0, rows, logits);
  std::vector<double> chosen;  // whether expert 3 is
  for (std::size_t t = 0; t < logits.rows(); ++t) {
    const auto row = logits.row(t);
    const auto above = std::ranges::count_if(row, [&](float z) { return z > row[3]; });
    chosen.push_back(above < static_cast<std::ptrdiff_t>(top_k) ? 1.0 : 0.0);
  }
  const double mean =
      std::accumulate(chosen.begin(), chosen.end(), 0.0) / static_cast<double>(chosen.size());
  for (const std::size_t d : {1u, 2u, 4u}) {
    double product = 0.0, pairs = 0.0;
    for (std::size_t t = 0; t + d < chosen.size(); ++t) {
      if (t % length + d >= length) continue;
      product += (chosen[t] - mean) * (chosen[t + d] - mean);
      pairs += 1.0;
    }
    const double correlation = product / pairs / (mean * (1.0 - mean));
    EXPECT_NEAR(correlation, std::pow(memory, static_cast<double>(d)), 5 / std::sqrt(pairs)) << d;
  }
}

/// An offset o on every coordinate of embeddings of variance 1: two tokens have a cosine of
/// o^2 / (1 + o^2), and so have their logits before any training.
TEST(MeasuredSkew, AnEmbeddingOffsetIsTheCommonComponentOfTheLogits) {
  constexpr std::size_t tokens = 40, experts = 400;
  for (const double offset : {0.0, 1.0, 2.0}) {
    const LanguageModelSettings settings = {.vocabulary = tokens,
                                            .layers = 1,
                                            .embedding_offset = offset,
                                            .moe = {.router = {.hidden = 64,
                                                               .routed_experts = experts,
                                                               .top_k = 2,
                                                               .score = ScoreFunction::logit},
                                                    .latent = 2,
                                                    .expert_inner = 2,
                                                    .shared_experts = 0}};
    LanguageModel<float> model(
        settings, [&] { return std::make_unique<NoBalancer>(settings.moe.router.routed_experts); });
    initialize<float>(model, Stream(3));
    std::vector<std::int32_t> ids(tokens);
    std::iota(ids.begin(), ids.end(), 0);
    model.forward(ids, {});
    const auto& logits = model.moe(0).routing().scores;
    const auto product = [&](std::size_t t, std::size_t u) {
      double sum = 0.0;
      for (std::size_t j = 0; j < experts; ++j)
        sum += static_cast<double>(logits(t, j)) * static_cast<double>(logits(u, j));
      return sum;
    };
    double cosines = 0.0, pairs = 0.0;
    for (std::size_t t = 0; t < tokens; ++t) {
      for (std::size_t u = 0; u < t; ++u) {
        cosines += product(t, u) / std::sqrt(product(t, t) * product(u, u));
        pairs += 1.0;
      }
    }
    EXPECT_NEAR(cosines / pairs, offset * offset / (1.0 + offset * offset), 0.05) << offset;
  }
}

}  // namespace
}  // namespace ballast::sim
