#include "props/subjects/built_in_subject.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace ballast::props {
namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

Matrix<float> rows(std::initializer_list<std::vector<float>> values) {
  Matrix<float> out(values.size(), values.begin()->size());
  std::size_t t = 0;
  for (const auto& row : values) std::ranges::copy(row, out.row(t++).begin());
  return out;
}

Open two_layers(BalancerKind kind = BalancerKind::quantile) {
  return {.model = {.layers = 2, .routed_experts = 3, .top_k = 1, .score = ScoreFunction::logit},
          .balancer = {.kind = kind},
          .ranks = 2};
}

Forward forward_of(std::size_t layer, Matrix<float> logits) {
  return {.layer = layer, .rank = 0, .mode = Mode::train, .logits = std::move(logits), .mask = {}};
}

std::string code(const Answer& answer) {
  const auto* refusal = std::get_if<Refusal>(&answer);
  return refusal == nullptr ? "answered" : refusal->code;
}

TEST(BuiltInSubject, RoutesByScorePlusBiasAndWeighsByTheSoftmaxOfLogits) {
  BuiltInSubject subject;
  Open open = two_layers();
  open.biases = Biases{{0, 0, 0}, {0, 4, 0}};
  subject.open(open);
  const Matrix<float> logits = rows({{1, 0, 0}});
  EXPECT_EQ(std::get<Routed>(subject.ask(forward_of(0, logits))).indices[0][0], 0);
  const auto routed = std::get<Routed>(subject.ask(forward_of(1, logits)));
  EXPECT_EQ(routed.indices[0][0], 1);
  EXPECT_EQ(routed.weights[0][0], 1.0);
}

TEST(BuiltInSubject, CountsTrainingForwardsOfValidTokensWhileACollectorIsActive) {
  BuiltInSubject subject;
  subject.open(two_layers());
  subject.ask(forward_of(0, rows({{1, 0, 0}})));
  subject.ask(Collector{CollectorAction::enter, true});
  Forward forward = forward_of(1, rows({{0, 0, 1}, {nan_value, nan_value, 3}, {1, 0, 0}}));
  forward.mask = {1, 1, 0};
  subject.ask(forward);
  forward.mode = Mode::eval;
  subject.ask(forward);
  forward.mode = Mode::recompute;
  subject.ask(forward);
  const auto snapshot = std::get<Snapshot>(subject.ask(Collector{CollectorAction::snapshot, true}));
  ASSERT_EQ(snapshot.layers.size(), 2u);
  EXPECT_EQ(snapshot.layers.at("layers.0").tokens, 0);
  EXPECT_EQ(snapshot.layers.at("layers.1").expert_load_counts,
            (std::vector<std::int64_t>{0, 0, 2}));
}

TEST(BuiltInSubject, LoadsEachStateThatItSaved) {
  BuiltInSubject subject;
  subject.open(two_layers());
  subject.ask(SetBiases{{{1, 2, 3}, {4, 5, 6}}});
  subject.ask(Save{});
  subject.ask(SetBiases{{{0, 0, 0}, {0, 0, 0}}});
  subject.ask(Save{});
  subject.ask(Load{0});
  EXPECT_EQ(std::get<BiasesAnswer>(subject.ask(GetBiases{})).biases,
            (std::vector<std::vector<double>>{{1, 2, 3}, {4, 5, 6}}));
  subject.ask(Load{1});
  EXPECT_EQ(std::get<BiasesAnswer>(subject.ask(GetBiases{})).biases[1],
            (std::vector<double>{0, 0, 0}));
}

TEST(BuiltInSubject, RefusesWhatMakesNoSense) {
  BuiltInSubject subject;
  EXPECT_EQ(code(subject.ask(Step{})), "invalid") << "before it is open";
  subject.open(two_layers());
  EXPECT_EQ(code(subject.ask(forward_of(2, rows({{1, 2, 3}})))), "invalid");
  EXPECT_EQ(code(subject.ask(forward_of(0, rows({{1, 2}})))), "invalid");
  Forward forward = forward_of(0, rows({{1, 2, 3}}));
  forward.rank = 2;
  EXPECT_EQ(code(subject.ask(forward)), "invalid");
  forward.rank = 1;
  forward.mask = {1, 1};
  EXPECT_EQ(code(subject.ask(forward)), "invalid");
  EXPECT_EQ(code(subject.ask(SetBiases{{{1, 2, 3}}})), "invalid");
  EXPECT_EQ(code(subject.ask(Load{0})), "invalid");
  EXPECT_EQ(code(subject.ask(Collector{CollectorAction::exit, true})), "invalid");
  EXPECT_EQ(code(subject.ask(Collector{CollectorAction::snapshot, true})), "invalid");
  EXPECT_EQ(code(subject.ask(Collector{CollectorAction::enter, true})), "answered");
  EXPECT_EQ(code(subject.ask(Collector{CollectorAction::enter, true})), "already_active");
  EXPECT_EQ(code(subject.ask(MetricsOf{{{1, -1}}})), "invalid");
  EXPECT_EQ(code(subject.ask(Combine{{{.data = -1, .metrics = {}}}})), "invalid");
}

TEST(BuiltInSubject, OpensOnlyWhatItIs) {
  BuiltInSubject subject;
  EXPECT_EQ(code(subject.open(two_layers(BalancerKind::sign))), "answered");
  Open open = two_layers(BalancerKind::none);
  open.model.routed_experts = 4;
  open.model.top_k = 1;
  open.model.groups = Groups{.n_group = 2, .topk_group = 1};
  EXPECT_EQ(code(subject.open(open)), "answered");
  open.balancer.kind = BalancerKind::quantile;
  EXPECT_EQ(code(subject.open(open)), "unsupported") << "no cutoff with groups";
  open.model.groups = Groups{.n_group = 3, .topk_group = 1};
  EXPECT_EQ(code(subject.open(open)), "unsupported") << "no groups of one size";
  open = two_layers();
  open.model.top_k = 3;
  EXPECT_EQ(code(subject.open(open)), "unsupported") << "no cutoff";
  open.balancer.kind = BalancerKind::none;
  EXPECT_EQ(code(subject.open(open)), "answered");
  open.model.top_k = 4;
  EXPECT_EQ(code(subject.open(open)), "invalid");
}

TEST(BuiltInSubject, AnswersForwardsWithoutTokens) {
  BuiltInSubject subject;
  subject.open(two_layers());
  EXPECT_TRUE(std::get<Routed>(subject.ask(forward_of(0, Matrix<float>(0, 3)))).indices.empty());
}

TEST(BuiltInSubject, OpensAnew) {
  BuiltInSubject subject;
  subject.open(two_layers());
  subject.ask(SetBiases{{{1, 2, 3}, {4, 5, 6}}});
  subject.ask(Save{});
  subject.ask(Collector{CollectorAction::enter, true});
  subject.open(two_layers());
  EXPECT_EQ(std::get<BiasesAnswer>(subject.ask(GetBiases{})).biases[0],
            (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(code(subject.ask(Load{0})), "invalid");
  EXPECT_EQ(code(subject.ask(Collector{CollectorAction::enter, true})), "answered");
}

}  // namespace
}  // namespace ballast::props
