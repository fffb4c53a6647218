#include "core/model/language_model.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "core/balancers/no_balancer.h"
#include "tests/core/support/random_matrix.h"

namespace ballast {
namespace {

LanguageModelSettings small_settings() {
  return {.vocabulary = 7,
          .layers = 2,
          .embedding_offset = 0.5,
          .moe = {.router = {.hidden = 6, .routed_experts = 5, .top_k = 2},
                  .latent = 4,
                  .expert_inner = 3,
                  .shared_experts = 1,
                  .shared_inner = 3}};
}

template <class Real>
std::unique_ptr<LanguageModel<Real>> make_model(const LanguageModelSettings& settings, std::uint64_t seed = 1) {
  auto model = std::make_unique<LanguageModel<Real>>(
      settings, [&] { return std::make_unique<NoBalancer>(settings.moe.router.routed_experts); });
  initialize<Real>(*model, Stream(seed));
  return model;
}

const std::vector<std::int32_t> tokens = {3, 0, 6, 3, 2, 5, 5, 1};

double weighted_sum(LanguageModel<double>& model, const Matrix<double>& c) {
  const auto& logits = model.forward(tokens, {});
  double sum = 0.0;
  for (std::size_t i = 0; i < c.values().size(); ++i) sum += logits.values()[i] * c.values()[i];
  return sum;
}

TEST(LanguageModel, GradientOfEveryParameterIsThatOfCentralDifferences) {
  const auto settings = small_settings();
  const auto model = make_model<double>(settings);
  const auto c = test::random_matrix<double>(tokens.size(), settings.vocabulary, 2);
  weighted_sum(*model, c);
  model->backward(c, serial_executor());
  constexpr double step = 1e-6;
  std::size_t checked = 0;
  for (const auto& [name, parameter] : model->named_parameters<double>()) {
    SCOPED_TRACE(name);
    for (std::size_t i = 0; i < parameter->value.values().size(); ++i, ++checked) {
      double& value = parameter->value.values()[i];
      const double before = value;
      value = before + step;
      const double above = weighted_sum(*model, c);
      value = before - step;
      const double below = weighted_sum(*model, c);
      value = before;
      const double expected = (above - below) / (2.0 * step);
      EXPECT_NEAR(parameter->gradient.values()[i], expected, 1e-6 * (1.0 + std::abs(expected)));
    }
  }
  EXPECT_GT(checked, 700u);
}

/// All gradients after backward passes over the given pieces of one batch.
std::vector<float> gradients_over(const std::vector<std::size_t>& pieces) {
  const auto settings = small_settings();
  const auto model = make_model<float>(settings);
  const auto c = test::random_matrix<float>(tokens.size(), settings.vocabulary, 2);
  std::size_t first = 0;
  for (const std::size_t count : pieces) {
    model->forward(std::span(tokens).subspan(first, count), {});
    model->backward(c.view().block(first, count), serial_executor());
    first += count;
  }
  std::vector<float> all;
  for (const auto& [name, parameter] : model->named_parameters<float>()) {
    all.insert(all.end(), parameter->gradient.values().begin(), parameter->gradient.values().end());
  }
  return all;
}

TEST(LanguageModel, GradientsDoNotDependOnHowABatchIsSplit) {
  const auto whole = gradients_over({8});
  EXPECT_EQ(gradients_over({1, 1, 1, 1, 1, 1, 1, 1}), whole);
  EXPECT_EQ(gradients_over({3, 5}), whole);
  EXPECT_EQ(gradients_over({0, 4, 4}), whole);
}

TEST(LanguageModel, NamesItsModulesParentsFirst) {
  const auto model = make_model<float>(small_settings());
  std::vector<std::string> names;
  for (const auto& [name, module] : model->named_modules()) names.push_back(name);
  EXPECT_EQ(names.front(), "");
  const std::set<std::string> unique(names.begin(), names.end());
  EXPECT_EQ(unique.size(), names.size());
  for (const char* name : {"layers.0.moe", "layers.1.moe.router.gate", "layers.1.moe.experts.4.down", "norm",
                           "output", "layers.0.moe.shared.up", "layers.0.norm"}) {
    EXPECT_TRUE(unique.contains(name)) << name;
  }
}

TEST(LanguageModel, ParametersRoundTripToTheBit) {
  const auto settings = small_settings();
  const auto model = make_model<float>(settings), other = make_model<float>(settings, 2);
  StateDict state, back;
  save_parameters<float>(*model, state, "model.");
  load_parameters<float>(*other, StateDict::from_bytes(state.to_bytes()), "model.");
  save_parameters<float>(*other, back, "model.");
  EXPECT_EQ(state, back);
}

TEST(LanguageModel, LoadingAStateOfAnotherShapeChangesNothing) {
  auto settings = small_settings();
  const auto model = make_model<float>(settings);
  settings.moe.latent = 3;
  const auto other = make_model<float>(settings, 2);
  StateDict state, before, after;
  save_parameters<float>(*other, state, "");
  save_parameters<float>(*model, before, "");
  EXPECT_THROW(load_parameters<float>(*model, state, ""), std::exception);
  save_parameters<float>(*model, after, "");
  EXPECT_EQ(before, after);
}

TEST(LanguageModel, InitialValuesOfAParameterDependOnItsNameAlone) {
  auto settings = small_settings();
  const auto two = make_model<float>(settings);
  settings.layers = 1;
  const auto one = make_model<float>(settings);
  EXPECT_EQ(one->embedding.value, two->embedding.value);
  EXPECT_EQ(one->moe(0).up.weight.value, two->moe(0).up.weight.value);
  EXPECT_FALSE(two->moe(0).up.weight.value == two->moe(1).up.weight.value);
}

TEST(LanguageModel, RefusesATokenOutsideTheVocabulary) {
  const auto model = make_model<float>(small_settings());
  EXPECT_THROW(model->forward(std::vector<std::int32_t>{7}, {}), std::invalid_argument);
  EXPECT_THROW(model->forward(std::vector<std::int32_t>{-1}, {}), std::invalid_argument);
}

TEST(LanguageModel, ModeReachesEveryModule) {
  const auto model = make_model<float>(small_settings());
  model->eval();
  for (const auto& [name, module] : model->named_modules()) EXPECT_FALSE(module->training()) << name;
  model->train();
  for (const auto& [name, module] : model->named_modules()) EXPECT_TRUE(module->training()) << name;
}

}  // namespace
}  // namespace ballast
