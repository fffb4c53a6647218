#include "sim/sweep/axis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "sim/input_error.h"

namespace ballast::sim {
namespace {

Axis axis(const std::string& json) {
  return Axis(Json::parse(json), Place{"f.json", "/axes/0", Speaker::file});
}

std::vector<Json> labels(const Axis& axis) {
  std::vector<Json> all;
  for (const AxisValue& value : axis.values()) all.push_back(value.label);
  return all;
}

std::string error(const std::string& json) {
  try {
    axis(json);
    return "no error";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(Axis, AListSetsItsFieldToEachValueInOrder) {
  const Axis sigma = axis(R"({"field": "tokens.sigma", "values": [2, 0.5]})");
  EXPECT_EQ(sigma.name(), "tokens.sigma");
  ASSERT_EQ(sigma.values().size(), 2u);
  EXPECT_EQ(sigma.values()[1].settings.at(0).path, "tokens.sigma");
  EXPECT_EQ(sigma.values()[1].settings.at(0).value, "0.5");
}

TEST(Axis, AGroupSetsSeveralFieldsUnderItsLabel) {
  const Axis balancer = axis(R"({"name": "balancer", "values": [
      {"label": "off", "set": {"balancer.kind": "none"}},
      {"label": "fine", "set": {"balancer.estimator": "histogram", "balancer.bins": 4000}}]})");
  EXPECT_EQ(labels(balancer), (std::vector<Json>{"off", "fine"}));
  EXPECT_EQ(balancer.values()[1].settings.size(), 2u);
  EXPECT_EQ(balancer.fields(),
            (std::vector<std::string>{"balancer.kind", "balancer.estimator", "balancer.bins"}));
}

TEST(Axis, ARangeHasBothEndsAndEqualSteps) {
  EXPECT_EQ(labels(axis(R"({"field": "tokens.sigma",
                            "range": {"from": 0, "to": 0.3, "step": 0.1}})")),
            (std::vector<Json>{0.0, 0.1, 0.2, 0.3}));
  EXPECT_EQ(labels(axis(R"({"field": "tokens.sigma",
                            "range": {"from": 1, "to": 2, "points": 5}})")),
            (std::vector<Json>{1.0, 1.25, 1.5, 1.75, 2.0}));
}

TEST(Axis, ALogarithmicRangeHasEqualFactorsAndReadableValues) {
  EXPECT_EQ(labels(axis(R"({"field": "training.optimizer.learning_rate",
                            "log_range": {"from": 1e-4, "to": 1e-1, "points": 4}})")),
            (std::vector<Json>{1e-4, 1e-3, 1e-2, 1e-1}));
}

TEST(Axis, ValuesOfAnIntegerFieldAreWholeAndDifferent) {
  EXPECT_EQ(labels(axis(R"({"field": "model.routed_experts",
                            "log_range": {"from": 1, "to": 8, "points": 10}})")),
            (std::vector<Json>{1u, 2u, 3u, 4u, 5u, 6u, 8u}));
}

TEST(Axis, ADrawFromARangeStaysInsideAndCoversIt) {
  const Axis rate = axis(R"({"field": "training.optimizer.learning_rate",
                             "log_range": {"from": 1e-4, "to": 1e-1}})");
  EXPECT_TRUE(rate.values().empty());
  Stream stream(1);
  int below = 0;
  for (int i = 0; i < 1000; ++i) {
    const double value = rate.draw(stream).label.get<double>();
    EXPECT_GE(value, 1e-4);
    EXPECT_LE(value, 1e-1);
    below += value < std::sqrt(1e-5) ? 1 : 0;
  }
  EXPECT_NEAR(below, 500, 80);  // half of the logarithms, within five deviations
}

TEST(Axis, ADrawFromAListTakesEveryValue) {
  const Axis experts = axis(R"({"field": "model.routed_experts", "values": [4, 8, 16]})");
  Stream stream(1);
  std::set<Json> seen;
  for (int i = 0; i < 100; ++i) seen.insert(experts.draw(stream).label);
  EXPECT_EQ(seen.size(), 3u);
}

TEST(Axis, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(error(R"({"field": "tokens.sigm", "values": [1]})"),
            "f.json#/axes/0/field: unknown field 'tokens.sigm': a scenario has no such field; did "
            "you mean 'tokens.sigma'?");
  EXPECT_EQ(error(R"({"field": "tokens", "values": [1]})"),
            "f.json#/axes/0/field: cannot set 'tokens' as a whole: it is a group of fields; name "
            "one of source, sequence_length, padding, vocabulary, frequency, sigma, exponent, "
            "topics, topic_persistence, file, token, shift, rank_skew, "
            "burst_share, burst_length, repeat_period, synchronised_steps in it");
  EXPECT_EQ(error(R"({"field": "tokens.sigma", "vales": [1]})"),
            "f.json#/axes/0/vales: unknown key 'vales': there is no such field here; did you mean "
            "'values'?");
  EXPECT_EQ(error(R"({"field": "tokens.sigma", "values": [1, "x"]})"),
            "f.json#/axes/0/values/1: bad value of 'tokens.sigma': \"x\" is not a number; give a "
            "number at least 0.0 and at most 20.0");
  EXPECT_EQ(error(R"({"field": "tokens.sigma", "values": [1, 2, 1]})"),
            "f.json#/axes/0/values/2: bad values of axis 'tokens.sigma': 1 is there twice; remove "
            "one of them");
  EXPECT_EQ(error(R"({"name": "b", "values": [{"label": "x", "set": {"balancer.knd": "none"}}]})"),
            "f.json#/axes/0/values/0/set/balancer.knd: unknown field 'balancer.knd': a scenario "
            "has no such field; did you mean 'balancer.kind'?");
  EXPECT_EQ(error(R"({"field": "tokens.sigma", "range": {"from": 0, "to": 30, "points": 3}})"),
            "f.json#/axes/0/range/to: bad value of 'tokens.sigma': 30 is too large; give a number "
            "at least 0.0 and at most 20.0");
}

TEST(Axis, RefusesWhatMakesNoAxis) {
  for (const char* entry : {
           "3",
           R"({})",
           R"({"field": "tokens.sigma"})",
           R"({"field": "tokens.sigma", "values": []})",
           R"({"field": "tokens.sigma", "values": 3})",
           R"({"field": "tokens.sigma", "values": [1], "range": {"from": 0, "to": 1}})",
           R"({"name": "b", "values": [{"set": {"balancer.kind": "none"}}]})",
           R"({"name": "b", "values": [{"label": "x"}]})",
           R"({"name": "b", "range": {"from": 0, "to": 1}})",
           R"({"field": "balancer.kind", "range": {"from": 0, "to": 1}})",
           R"({"field": "tokens.sigma", "range": {"from": 1, "to": 1, "points": 2}})",
           R"({"field": "tokens.sigma", "range": {"to": 1, "points": 2}})",
           R"({"field": "tokens.sigma", "range": {"from": 0, "to": 1, "points": 2, "step": 1}})",
           R"({"field": "tokens.sigma", "range": {"from": 0, "to": 1, "points": 1}})",
           R"({"field": "tokens.sigma", "range": {"from": 0, "to": 1, "step": 1e-9}})",
           R"({"field": "tokens.sigma", "log_range": {"from": 0, "to": 1, "points": 2}})",
           R"({"field": "tokens.sigma", "log_range": {"from": 1, "to": 2, "step": 1}})",
       }) {
    EXPECT_EQ(error(entry).rfind("f.json#/axes/0", 0), 0u) << entry << ": " << error(entry);
  }
}

}  // namespace
}  // namespace ballast::sim
