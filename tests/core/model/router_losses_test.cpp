#include "core/model/router_losses.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/balancers/no_balancer.h"
#include "core/model/language_model.h"
#include "core/model/stable_latent_moe.h"
#include "tests/core/support/random_matrix.h"

namespace ballast {
namespace {

using Counts = std::vector<std::int64_t>;
using Valid = std::vector<std::uint8_t>;
using test::random_matrix;

constexpr double c = 0.01;
const AuxFormula all_formulas[] = {AuxFormula::megatron, AuxFormula::without_k, AuxFormula::switch_top_1,
                                   AuxFormula::gshard};
const ScoreFunction all_scores[] = {ScoreFunction::sigmoid, ScoreFunction::softmax, ScoreFunction::logit};

RouterSettings router_of(std::size_t experts, std::size_t top_k, ScoreFunction score = ScoreFunction::softmax) {
  return {.hidden = 2, .routed_experts = experts, .top_k = top_k, .score = score};
}

Routing<double> route(const RouterSettings& settings, const Matrix<double>& logits) {
  return Router<double>(settings, true).route(Matrix<double>(logits), std::vector<float>(settings.routed_experts));
}

/// The losses of one forward in which every row is valid.
RouterLossValues values_of(const RouterLossSettings& losses, const RouterSettings& router, const Matrix<double>& logits,
                           std::size_t sequence_length = 0) {
  const auto routing = route(router, logits);
  RouterLosses<double> all(losses, router);
  all.forward(routing, Valid(logits.rows(), 1), sequence_length, false);
  return all.values(routing);
}

/// Token t likes the experts t, t + 1, ... (modulo their number), the k-th as much as the first.
Matrix<double> cyclic_logits(std::size_t tokens, std::size_t experts, std::size_t top_k) {
  Matrix<double> logits(tokens, experts, -2.0);
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t i = 0; i < top_k; ++i) logits(t, (t * top_k + i) % experts) = 2.0;
  }
  return logits;
}

TEST(RouterLosses, AuxIsTheCoefficientAtBalance) {
  for (const auto score : all_scores) {
    const auto router = router_of(4, 2, score);
    const auto logits = cyclic_logits(8, 4, 2);
    const auto aux = [&](AuxFormula formula) {
      return values_of({.aux = formula, .aux_coefficient = c}, router, logits).aux;
    };
    EXPECT_NEAR(aux(AuxFormula::megatron), c, 1e-15);
    EXPECT_NEAR(aux(AuxFormula::without_k), 2 * c, 1e-15);
    EXPECT_NEAR(aux(AuxFormula::switch_top_1), c, 1e-15);
    EXPECT_NEAR(aux(AuxFormula::gshard), c / 16, 1e-15);
  }
}

TEST(RouterLosses, AuxIsTheNumberOfExpertsTimesThatWhenCollapsed) {
  Matrix<double> logits(6, 5, -400.0);
  for (std::size_t t = 0; t < 6; ++t) logits(t, 3) = 400.0;
  for (const auto score : {ScoreFunction::softmax, ScoreFunction::sigmoid}) {
    const auto aux = [&](AuxFormula formula) {
      return values_of({.aux = formula, .aux_coefficient = c}, router_of(5, 1, score), logits).aux;
    };
    EXPECT_NEAR(aux(AuxFormula::megatron), 5 * c, 1e-12);
    EXPECT_NEAR(aux(AuxFormula::switch_top_1), 5 * c, 1e-12);
    EXPECT_NEAR(aux(AuxFormula::gshard), c / 5, 1e-12);
  }
}

RC_GTEST_PROP(RouterLosses, AuxStaysInItsBounds, ()) {
  const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1000);
  const auto router = router_of(5, *rc::gen::inRange<std::size_t>(1, 6), *rc::gen::element(ScoreFunction::sigmoid, ScoreFunction::softmax));
  const auto logits = random_matrix<double>(7, 5, seed, 3.0);
  const auto routing = route(router, logits);
  const double aux = values_of({.aux = AuxFormula::megatron, .aux_coefficient = 1.0}, router, logits).aux;
  std::vector<double> mean(5);
  for (std::size_t t = 0; t < 7; ++t) {
    double sum = 0.0;
    for (const double s : routing.scores.row(t)) sum += s;
    for (std::size_t j = 0; j < 5; ++j) mean[j] += routing.scores(t, j) / sum / 7.0;
  }
  Counts counts(5);
  count_assignments(routing.selection.indices, {}, counts);
  const double largest_share = static_cast<double>(std::ranges::max(counts)) / (7.0 * static_cast<double>(router.top_k));
  RC_ASSERT(aux >= 0.0);
  RC_ASSERT(aux <= 5.0 * std::ranges::max(mean) + 1e-12);
  RC_ASSERT(aux <= 5.0 * largest_share + 1e-12);
}

TEST(RouterLosses, WeightsFollowTheirFormulas) {
  const Counts counts{6, 2, 0, 0};
  const auto weights = [&](AuxFormula formula) {
    return aux_weights({.aux = formula, .aux_coefficient = 1.0}, counts, 4, 2);
  };
  EXPECT_EQ(weights(AuxFormula::megatron), (std::vector<double>{3.0, 1.0, 0.0, 0.0}));
  EXPECT_EQ(weights(AuxFormula::without_k), (std::vector<double>{6.0, 2.0, 0.0, 0.0}));
  EXPECT_EQ(weights(AuxFormula::switch_top_1), (std::vector<double>{6.0, 2.0, 0.0, 0.0}));
  EXPECT_EQ(weights(AuxFormula::gshard), (std::vector<double>{0.375, 0.125, 0.0, 0.0}));
}

// Two sequences, each collapsed onto another expert: the batch is balanced, the sequences are not.
TEST(RouterLosses, SequenceScopeSeesWhatTheBatchHides) {
  Matrix<double> logits(8, 2, -400.0);
  for (std::size_t t = 0; t < 8; ++t) logits(t, t / 4) = 400.0;
  RouterLossSettings losses{.aux = AuxFormula::megatron, .aux_coefficient = c};
  EXPECT_NEAR(values_of(losses, router_of(2, 1), logits, 4).aux, c, 1e-15);
  losses.aux_scope = AuxScope::sequence;
  EXPECT_NEAR(values_of(losses, router_of(2, 1), logits, 4).aux, 2 * c, 1e-15);
  EXPECT_NEAR(values_of(losses, router_of(2, 1), logits, 0).aux, c, 1e-15);
}

// The second forward alone is collapsed; with the first it is balanced.
TEST(RouterLosses, GlobalScopeCountsTheStepSoFar) {
  const auto router = router_of(2, 1);
  Matrix<double> first(4, 2, 0.0), second(4, 2, 0.0);
  for (std::size_t t = 0; t < 4; ++t) {
    first(t, 0) = 800.0;
    second(t, 1) = 800.0;
  }
  RouterLosses<double> losses({.aux = AuxFormula::megatron, .aux_coefficient = c, .aux_scope = AuxScope::global}, router);
  const auto aux = [&](const Matrix<double>& logits, bool recompute = false) {
    const auto routing = route(router, logits);
    losses.forward(routing, Valid(4, 1), 0, recompute);
    return losses.values(routing).aux;
  };
  EXPECT_NEAR(aux(first), 2 * c, 1e-15);
  EXPECT_NEAR(aux(second), c, 1e-15);
  EXPECT_NEAR(aux(second, true), c, 1e-15);  // not counted again
  losses.end_step();
  EXPECT_NEAR(aux(second), 2 * c, 1e-15);
}

TEST(RouterLosses, ZIsTheMeanSquareOfTheLogSum) {
  Matrix<double> logits(2, 4, 0.0);
  logits(1, 0) = 50.0;
  const double log_sum = std::log(4.0), other = 50.0;
  for (const auto score : all_scores) {
    const auto z = values_of({.z_coefficient = c}, router_of(4, 1, score), logits).z;
    EXPECT_NEAR(z, c * (log_sum * log_sum + other * other) / 2.0, 1e-12);
  }
}

TEST(RouterLosses, LeavesOutTokensThatAreNotValid) {
  const auto router = router_of(3, 1);
  const auto logits = random_matrix<double>(6, 3, 4);
  Matrix<double> half(3, 3);
  for (std::size_t t = 0; t < 3; ++t) std::ranges::copy(logits.row(2 * t), half.row(t).begin());
  const RouterLossSettings settings{.aux = AuxFormula::megatron, .z_coefficient = c};
  RouterLosses<double> losses(settings, router);
  const auto routing = route(router, logits);
  losses.forward(routing, Valid{1, 0, 1, 0, 1, 0}, 0, false);
  const auto expected = values_of(settings, router, half);
  EXPECT_EQ(losses.values(routing).aux, expected.aux);
  EXPECT_EQ(losses.values(routing).z, expected.z);
  Matrix<double> dz(6, 3);
  losses.add_gradient(routing, 1.0, dz);
  for (std::size_t t = 1; t < 6; t += 2) {
    for (const double g : dz.row(t)) EXPECT_EQ(g, 0.0);
  }
  losses.forward(routing, Valid(6, 0), 0, false);
  EXPECT_EQ(losses.values(routing).aux, 0.0);
}

/// Holds the gradient against central differences of (tokens * values), with the counts as they are: a step is too
/// small to change a choice.
void expect_gradient(const RouterLossSettings& settings, const RouterSettings& router, std::size_t sequence_length) {
  constexpr double h = 1e-5;
  auto logits = random_matrix<double>(6, router.routed_experts, 9);
  const auto routing = route(router, logits);
  RouterLosses<double> losses(settings, router);
  losses.forward(routing, Valid(6, 1), sequence_length, false);
  Matrix<double> dz(6, router.routed_experts, 0.25);
  losses.add_gradient(routing, 8.0, dz);
  const auto total = [&] {
    const auto values = values_of(settings, router, logits, sequence_length);
    return 6.0 * (values.aux + values.z);
  };
  for (std::size_t i = 0; i < logits.values().size(); ++i) {
    const double at = logits.values()[i];
    logits.values()[i] = at + h;
    const double above = total();
    logits.values()[i] = at - h;
    const double below = total();
    logits.values()[i] = at;
    EXPECT_NEAR(dz.values()[i], 0.25 + 8.0 * (above - below) / (2.0 * h), 1e-7) << i;
  }
}

TEST(RouterLosses, GradientsAreThoseOfCentralDifferences) {
  for (const auto score : all_scores) {
    for (const auto formula : all_formulas) {
      for (const auto scope : {AuxScope::micro_batch, AuxScope::sequence, AuxScope::global}) {
        expect_gradient({.aux = formula, .aux_coefficient = 0.5, .aux_scope = scope}, router_of(5, 2, score), 3);
      }
    }
    expect_gradient({.z_coefficient = 0.3}, router_of(5, 2, score), 0);
    expect_gradient({.aux = AuxFormula::megatron, .z_coefficient = 0.3}, router_of(5, 2, score), 0);
  }
}

TEST(RouterLosses, SequenceAndZGradientsDoNotDependOnHowTheStepIsSplit) {
  const auto router = router_of(5, 2, ScoreFunction::sigmoid);
  const auto logits = random_matrix<double>(12, 5, 2);
  const RouterLossSettings settings{
      .aux = AuxFormula::megatron, .aux_scope = AuxScope::sequence, .z_coefficient = c};
  const auto gradient = [&](std::size_t first, std::size_t count) {
    Matrix<double> part(count, 5), dz(count, 5);
    std::ranges::copy(logits.view().block(first, count).values(), part.values().begin());
    const auto routing = route(router, part);
    RouterLosses<double> losses(settings, router);
    losses.forward(routing, Valid(count, 1), 3, false);
    losses.add_gradient(routing, 1.0, dz);
    return dz;
  };
  const auto whole = gradient(0, 12);
  for (std::size_t first = 0; first < 12; first += 3) {
    const auto part = gradient(first, 3);
    EXPECT_TRUE(std::ranges::equal(part.values(), whole.view().block(first, 3).values()));
  }
}

TEST(RouterLosses, RefusesCoefficientsAndShapesThatAreNone) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double wrong : {-1.0, nan, std::numeric_limits<double>::infinity()}) {
    EXPECT_THROW(RouterLosses<double>({.aux_coefficient = wrong}, router_of(2, 1)), std::invalid_argument);
    EXPECT_THROW(RouterLosses<double>({.z_coefficient = wrong}, router_of(2, 1)), std::invalid_argument);
  }
  EXPECT_THROW(values_of({.aux = AuxFormula::megatron, .aux_scope = AuxScope::sequence}, router_of(2, 1),
                         Matrix<double>(5, 2), 3),
               std::invalid_argument);
}

// ---- In the layer

std::unique_ptr<StableLatentMoE<double>> layer_with(const RouterLossSettings& losses) {
  StableLatentMoESettings settings{.router = {.hidden = 6, .routed_experts = 5, .top_k = 2},
                                   .latent = 4,
                                   .expert_inner = 3,
                                   .shared_experts = 0};
  settings.losses = losses;
  auto layer = std::make_unique<StableLatentMoE<double>>(settings, std::make_unique<NoBalancer>(5));
  initialize<double>(*layer, Stream(1));
  return layer;
}

constexpr RouterLossSettings both{.aux = AuxFormula::megatron, .aux_coefficient = 0.5, .z_coefficient = 0.25};

// With no gradient from above, all of it is that of the losses.
TEST(RouterLosses, TheLayerAddsTheirGradientToItsRouterAndItsInput) {
  const auto layer = layer_with(both);
  auto x = random_matrix<double>(8, 6, 3);
  layer->forward(x, {.loss_scale = 4.0});
  const auto dx = layer->backward(Matrix<double>(8, 6), serial_executor());
  const auto total = [&] {
    layer->forward(x, {});
    const auto values = layer->loss_values();
    return 4.0 * 8.0 * (values.aux + values.z);
  };
  constexpr double h = 1e-5;
  const auto expect_slope = [&](double& at, double gradient) {
    const double value = at;
    at = value + h;
    const double above = total();
    at = value - h;
    const double below = total();
    at = value;
    EXPECT_NEAR(gradient, (above - below) / (2.0 * h), 1e-6);
  };
  for (std::size_t i = 0; i < x.values().size(); ++i) expect_slope(x.values()[i], dx.values()[i]);
  auto& weight = layer->router.gate.weight;
  for (std::size_t i = 0; i < weight.value.values().size(); i += 3) {
    expect_slope(weight.value.values()[i], weight.gradient.values()[i]);
  }
}

TEST(RouterLosses, TheLayerHasNoneInEvaluation) {
  const auto layer = layer_with(both);
  const auto x = random_matrix<double>(8, 6, 3);
  layer->forward(x, {});
  EXPECT_GT(layer->loss_values().aux, 0.0);
  layer->eval();
  layer->forward(x, {});
  EXPECT_EQ(layer->loss_values().aux, 0.0);
  const auto dx = layer->backward(Matrix<double>(8, 6), serial_executor());
  for (const double g : dx.values()) EXPECT_EQ(g, 0.0);
}

}  // namespace
}  // namespace ballast
