#include "props/protocol/requests_json.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "props/cases/generate.h"
#include "tests/props/support/fakes.h"

namespace ballast::props {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

Json parsed(const Json& json) {
  return Json::parse(json.dump());
}

bool same_floats(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(a, b, [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y) || (std::isnan(x) && std::isnan(y));
  });
}

void expect_same(const Case& a, const Case& b) {
  EXPECT_EQ(case_json(a), case_json(b));
  EXPECT_EQ(a.salt, b.salt);
  EXPECT_EQ(a.open.model, b.open.model);
  EXPECT_EQ(a.open.balancer, b.open.balancer);
  ASSERT_EQ(a.history.size(), b.history.size());
  for (std::size_t i = 0; i < a.history.size(); ++i) {
    ASSERT_EQ(a.history[i].index(), b.history[i].index());
    const auto* forward = std::get_if<Forward>(&a.history[i]);
    if (forward == nullptr) continue;
    const auto& other = std::get<Forward>(b.history[i]);
    EXPECT_EQ(forward->logits.rows(), other.logits.rows());
    EXPECT_EQ(forward->logits.cols(), other.logits.cols());
    EXPECT_TRUE(same_floats(forward->logits.values(), other.logits.values()));
    EXPECT_EQ(forward->mask, other.mask);
  }
}

TEST(RequestsJson, GeneratedCasesReadBackToTheBit) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Stream stream(seed);
    const Case input = generate_case(stream, seed % 30, Features{.nonfinite = true});
    expect_same(read_case(parsed(case_json(input))), input);
  }
}

TEST(RequestsJson, ValuesThatAreHardToWriteReadBackToTheBit) {
  Matrix<float> logits(1, 8);
  const float values[] = {nan, infinity, -infinity, -0.0f, 0.1f, 1e-45f, 3.4028235e38f, 16777217.0f};
  std::copy(std::begin(values), std::end(values), logits.values().begin());
  Case input = test::case_of({Forward{.logits = logits, .mask = {1}}, SetBiases{{{nan, -0.0f}}},
                              Combine{{{.data = 3, .metrics = {{"a:mean", 0.1}, {"b:max", nan}}}}},
                              MetricsOf{{{std::int64_t{1} << 62, 0}}}});
  input.open.biases = Biases{{0.1f, -infinity}};
  input.salt = ~std::uint64_t{0};
  expect_same(read_case(parsed(case_json(input))), input);
}

TEST(RequestsJson, LinesAreThoseOfTheProtocol) {
  Open open;
  open.model = {.layers = 1, .routed_experts = 2, .top_k = 1, .groups = Groups{2, 1}};
  open.balancer.kind = BalancerKind::quantile;
  open.biases = Biases{{0.5f, -0.1f}};
  EXPECT_EQ(request_json(7, open).dump(),
            R"({"id":7,"op":"open","model":{"layers":1,"routed_experts":2,"top_k":1,"score":"sigmoid",)"
            R"("renormalize":true,"routed_scale":1.0,"groups":{"n_group":2,"topk_group":1}},)"
            R"("balancer":{"kind":"quantile","estimator":"exact","bins":1000,"rate":0.001,"update":"step"},)"
            R"("ranks":1,"biases":[[0.5,-0.10000000149011612]]})");
  Matrix<float> logits(1, 2);
  logits(0, 1) = nan;
  const Forward forward{.layer = 0, .rank = 0, .mode = Mode::eval, .logits = logits, .mask = {0}};
  EXPECT_EQ(request_json(8, Request(forward)).dump(),
            R"({"id":8,"op":"forward","layer":0,"rank":0,"mode":"eval","logits":[[0.0,"NaN"]],"mask":[false]})");
  EXPECT_EQ(request_json(9, Request(Step{.applied = false})).dump(), R"({"id":9,"op":"step","applied":false})");
  EXPECT_EQ(request_json(9, Request(Collector{.action = CollectorAction::enter, .enabled = false})).dump(),
            R"({"id":9,"op":"collector","action":"enter","enabled":false})");
  EXPECT_EQ(request_json(9, Request(Collector{.action = CollectorAction::exit})).dump(),
            R"({"id":9,"op":"collector","action":"exit"})");
}

TEST(RequestsJson, AnErrorBeginsWithThePointerOfWhatIsWrong) {
  const Case input = test::case_of({Forward{.logits = Matrix<float>(2, 4), .mask = {}}});
  const auto error = [&](const char* pointer, const Json& value) -> std::string {
    Json json = case_json(input);
    json[Json::json_pointer(pointer)] = value;
    try {
      read_case(json);
    } catch (const ProtocolError& e) {
      return e.what();
    }
    return "none";
  };
  EXPECT_EQ(error("/salt", "x"), R"(/salt: is "x", should be a string of digits, below 2^64)");
  EXPECT_EQ(error("/requests", Json::array()), "/requests: is an array, should be a list that begins with open");
  EXPECT_EQ(error("/requests/1/logits/1/3", nullptr),
            R"(/requests/1/logits/1/3: is null, should be a number, or "NaN", "Infinity" or "-Infinity")");
  EXPECT_EQ(error("/requests/1/op", "fly"),
            R"(/requests/1/op: is "fly", should be an op of the protocol that can come after open)");
  EXPECT_EQ(error("/requests/0/model/score", "relu"),
            R"(/requests/0/model/score: is "relu", should be one of "sigmoid", "softmax", "logit")");
  EXPECT_EQ(error("/requests/1/layer", -1), "/requests/1/layer: is -1, should be an integer, at least 0");
  EXPECT_EQ(error("/requests/1/logits/1", Json::array({1.0})),
            "/requests/1/logits/1: is an array, should be a row of 4 logits, as the first one");
  EXPECT_EQ(error("/requests/1/logits/0/0", 1e39), "/requests/1/logits/0/0: is 1e+39, should be within the range of fp32");
}

}  // namespace
}  // namespace ballast::props
