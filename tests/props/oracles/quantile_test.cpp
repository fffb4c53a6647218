#include "props/oracles/quantile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "props/subjects/built_in_subject.h"
#include "tests/props/oracles/balanced_optimum.h"
#include "tests/props/support/trials.h"

namespace ballast::props::oracle {
namespace {

using Rows = std::vector<std::vector<double>>;

Forward forward_of(const Rows& rows) {
  Forward forward{.layer = 0, .rank = 0, .mode = Mode::train, .logits = {}, .mask = {}};
  forward.logits = Matrix<float>(rows.size(), rows[0].size());
  for (std::size_t t = 0; t < rows.size(); ++t) {
    for (std::size_t j = 0; j < rows[t].size(); ++j)
      forward.logits(t, j) = static_cast<float>(rows[t][j]);
  }
  return forward;
}

ModelSpec model_of(std::size_t experts, std::size_t top_k) {
  return {.routed_experts = experts,
          .top_k = top_k,
          .score = ScoreFunction::logit,
          .groups = std::nullopt};
}

Observations observed(const Rows& scores, const std::vector<double>& biases, std::size_t top_k) {
  const Forward forward = forward_of(scores);
  const std::array forwards = {&forward};
  return observe(model_of(biases.size(), top_k), forwards, biases);
}

std::vector<double> centred(std::vector<double> values) {
  const double mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  for (double& value : values) value -= mean;
  return values;
}

void expect_near(const std::vector<double>& is, const std::vector<double>& should) {
  ASSERT_EQ(is.size(), should.size());
  for (std::size_t j = 0; j < is.size(); ++j) EXPECT_NEAR(is[j], should[j], 1e-6) << "expert " << j;
}

/// Both ends are the same where no value lies on a bin's edge, up to the margin.
void expect_near(const std::vector<Interval>& is, const std::vector<double>& should) {
  ASSERT_EQ(is.size(), should.size());
  for (std::size_t j = 0; j < is.size(); ++j) {
    EXPECT_NEAR(is[j].low, should[j], 2e-5) << "expert " << j;
    EXPECT_NEAR(is[j].high, should[j], 2e-5) << "expert " << j;
  }
}

// The vectors are those of the fact sheet's golden list, worked out by hand or published by others.

TEST(QuantileOracle, GivesTheExactRuleOnFourIdenticalTokens) {
  const Rows scores(4, {0.92, 0.68, 0.31, 0.07});
  for (const std::size_t k : {1, 2}) {
    expect_near(centred(exact_estimate(observed(scores, {0, 0, 0, 0}, k))),
                {-0.425, -0.185, 0.185, 0.425});
  }
}

TEST(QuantileOracle, AllowsBothSidesOfABinsEdge) {
  // r = 0 of the cutoff expert lies on the edge between bins 4 and 5 of 10.
  const auto estimate =
      histogram_estimate(observed(Rows(4, {0.92, 0.68, 0.31, 0.07}), {0, 0, 0, 0}, 1), 10);
  EXPECT_NEAR(estimate[1].high - estimate[1].low, 0.2, 1e-4);
  EXPECT_NEAR(estimate[0].high - estimate[0].low, 0.0, 1e-4);
}

TEST(QuantileOracle, GivesTheHandExampleOfTwoExperts) {
  const auto o = observed({{0.9, 0.5}, {0.8, 0.7}, {0.7, 0.2}, {0.6, 0.45}}, {0, 0}, 1);
  expect_near(exact_estimate(o), {-0.15, 0.0});
  EXPECT_EQ(loads(o.scores, o.biases, 1), (std::vector<std::int64_t>{4, 0}));
  // r = -0.4 lies on the edge between the bins from -0.4 and from -0.402 on.
  const Interval estimate = histogram_estimate(o, 1000)[0];
  EXPECT_NEAR(estimate.high, -0.398, 1e-5);
  EXPECT_NEAR(estimate.low, -0.400, 1e-5);
}

TEST(QuantileOracle, GivesAVectorWithoutValuesOnEdges) {
  const auto o = observed(
      {{.81, .32, .24, .45}, {.74, .55, .13, .62}, {.66, .61, .42, .29}, {.93, .27, .36, .17}},
      {.05, -.02, 0, -.03}, 2);
  expect_near(exact_estimate(o), {-0.24, -0.02, 0.06, 0.08});
  expect_near(histogram_estimate(o, 10), {-0.406, -0.094, 0.010, 0.010});
  EXPECT_EQ(loads(o.scores, o.biases, 2), (std::vector<std::int64_t>{4, 1, 1, 2}));
}

TEST(QuantileOracle, GivesAVectorOfAFractionalTarget) {
  const auto o = observed(
      {{.81, .32, .24}, {.74, .55, .13}, {.66, .61, .42}, {.93, .27, .36}, {.58, .19, .51}},
      {.07, -.03, -.04}, 1);
  expect_near(histogram_estimate(o, 8), {-0.556458333, -0.102222222, -0.028958333});
}

TEST(QuantileOracle, LeavesOutPadding) {
  Forward padded = forward_of({{9, 0, 3}, {1, 2, 0}, {-7, 5, 5}});
  padded.mask = {0, 1, 0};
  const std::array forwards = {&static_cast<const Forward&>(padded)};
  const auto o = observe(model_of(3, 1), forwards, std::vector<double>{0, 0, 0});
  EXPECT_EQ(o.tokens(), 1u);
  expect_near(exact_estimate(o), {0, -1, 1});
}

// ---------------------------------------------------------------------------------------------------------
// The dual objective and the balanced optimum, on all small worlds

using World = std::vector<std::vector<int>>;

/// Every multiset of rows with entries 0 to `levels` - 1: the order of tokens does not matter to
/// balancing.
void for_each_world(std::size_t tokens, std::size_t experts, int levels,
                    const std::function<void(const World&)>& visit) {
  std::size_t row_kinds = 1;
  for (std::size_t j = 0; j < experts; ++j) row_kinds *= static_cast<std::size_t>(levels);
  const auto row = [&](std::size_t kind) {
    std::vector<int> values(experts);
    for (int& value : values) {
      value = static_cast<int>(kind % static_cast<std::size_t>(levels));
      kind /= static_cast<std::size_t>(levels);
    }
    return values;
  };
  World world;
  const std::function<void(std::size_t)> add = [&](std::size_t least) {
    if (world.size() == tokens) return visit(world);
    for (std::size_t kind = least; kind < row_kinds; ++kind) {
      world.push_back(row(kind));
      add(kind);
      world.pop_back();
    }
  };
  add(0);
}

Rows scores_of(const World& world, double unit) {
  Rows rows;
  for (const auto& row : world) {
    rows.emplace_back();
    for (const int value : row) rows.back().push_back(unit * value);
  }
  return rows;
}

/// The smallest dual objective over biases of whole numbers: an optimal solution is among them,
/// since the problem's matrix is totally unimodular; and none needs to differ by more than the
/// scores do.
double smallest_dual(const Rows& scores, std::size_t top_k, int levels) {
  const std::size_t experts = scores[0].size();
  const Observations o = observed(scores, std::vector<double>(experts), top_k);
  std::vector<double> biases(experts);
  double smallest = dual_objective(o, biases);
  const std::function<void(std::size_t)> search = [&](std::size_t expert) {
    if (expert == experts) {
      smallest = std::min(smallest, dual_objective(o, biases));
      return;
    }
    for (int b = -2 * levels; b <= 2 * levels; ++b) {
      biases[expert] = b;
      search(expert + 1);
    }
  };
  search(1);  // only differences count
  return smallest;
}

TEST(QuantileOracle, HasADualObjectiveWhoseMinimumIsTheBalancedOptimum) {
  for (const auto& [tokens, experts] : {std::pair(2, 2), {3, 2}, {2, 3}, {3, 3}}) {
    const auto e = static_cast<std::size_t>(experts);
    for (int k = 1; k < experts; ++k) {
      for_each_world(static_cast<std::size_t>(tokens), e, 2, [&](const World& world) {
        const double optimum = static_cast<double>(balanced_optimum(world, k)) / experts;
        EXPECT_NEAR(smallest_dual(scores_of(world, 1.0), static_cast<std::size_t>(k), 2), optimum,
                    1e-9);
      });
    }
  }
}

/// Balances a frozen batch on the built-in subject.
class FrozenBatch {
 public:
  FrozenBatch(const Rows& scores, std::size_t top_k)
      : forward_(forward_of(scores)),
        observed_(observed(scores, std::vector<double>(scores[0].size()), top_k)) {
    subject_.open({.model = model_of(scores[0].size(), top_k),
                   .balancer = {.kind = BalancerKind::quantile},
                   .ranks = 1,
                   .biases = std::nullopt});
  }
  double dual_after_step() {
    subject_.ask(forward_);
    return dual_objective(observed_, std::get<BiasesAnswer>(subject_.ask(Step{})).biases[0]);
  }

 private:
  BuiltInSubject subject_;
  Request forward_;
  Observations observed_;
};

TEST(QuantileOracle, BoundsEveryStepOnAFrozenBatchByTheBalancedOptimum) {
  std::size_t stalled = 0;
  for (const std::size_t k : {1, 2}) {
    for_each_world(3, 3, 3, [&](const World& world) {
      const double optimum =
          static_cast<double>(balanced_optimum(world, static_cast<int>(k))) / 3.0;
      FrozenBatch batch(scores_of(world, 1.0), k);
      double dual = batch.dual_after_step();
      for (int step = 0; step < 4; ++step) {
        const double next = batch.dual_after_step();
        EXPECT_LE(next, dual + 1e-5);
        EXPECT_GE(next, optimum - 1e-5);
        dual = next;
      }
      stalled += dual > optimum + 1e-5 ? 1 : 0;
    });
  }
  EXPECT_GT(stalled, 0u)
      << "coordinate descent stops above the optimum at times, so laws must not ask for more";
}

// ---------------------------------------------------------------------------------------------------------
// The laws on all small worlds

Case world_case(const World& world, std::size_t top_k, Estimator estimator, bool first_biases) {
  Case input;
  const std::size_t experts = world[0].size();
  input.open.model = model_of(experts, top_k);
  input.open.balancer = {.kind = BalancerKind::quantile, .estimator = estimator, .bins = 16};
  if (first_biases) {
    input.open.biases = Biases(1, std::vector<float>(experts));
    for (std::size_t j = 0; j < experts; ++j)
      (*input.open.biases)[0][j] = static_cast<float>(j % 2) / 2.0f;
  }
  const Request forward = forward_of(scores_of(world, 0.5));
  input.history = {forward, Step{}, forward, Step{}};
  return input;
}

void expect_laws(const std::vector<const Law*>& laws, Estimator estimator) {
  BuiltInSubject subject;
  struct Size {
    std::size_t tokens, experts;
    int levels;
  };
  for (const auto& [tokens, experts, levels] :
       {Size{1, 4, 3}, {2, 2, 3}, {4, 2, 3}, {3, 3, 3}, {4, 3, 2}, {2, 4, 2}, {4, 4, 2}}) {
    for (std::size_t k = 1; k < experts; ++k) {
      for_each_world(tokens, experts, levels, [&, e = experts](const World& world) {
        const Case input =
            world_case(world, k, estimator, (world[0][0] + static_cast<int>(e)) % 2 == 0);
        for (const Law* const law : laws) {
          const Outcome outcome = law->check(subject, input);
          ASSERT_EQ(outcome.kind, Outcome::Kind::holds)
              << law->id << ": " << outcome.expected << "; " << outcome.seen;
        }
      });
    }
  }
}

TEST(QuantileLaws, HoldExactlyOnAllSmallWorlds) {
  expect_laws({&law_of("quantile.exact-contract"), &law_of("quantile.dual-descent"),
               &law_of("quantile.centred"), &law_of("balance.direction")},
              Estimator::exact);
}

TEST(QuantileLaws, HoldByHistogramOnAllSmallWorlds) {
  expect_laws({&law_of("quantile.histogram-estimate"), &law_of("balance.direction"),
               &law_of("balance.liveness")},
              Estimator::histogram);
}

}  // namespace
}  // namespace ballast::props::oracle
