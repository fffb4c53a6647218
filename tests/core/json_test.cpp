#include "core/json.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace ballast {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

std::uint32_t bits(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

float read_back(float value) {
  return json::parse(json(shortest_double(value)).dump()).get<float>();
}

rc::Gen<float> any_finite_float() {
  return rc::gen::suchThat(rc::gen::map(rc::gen::arbitrary<std::uint32_t>(),
                                        [](std::uint32_t b) { return std::bit_cast<float>(b); }),
                           [](float x) { return std::isfinite(x); });
}

rc::Gen<TensorData> any_tensor() {
  return rc::gen::exec([] {
    TensorData tensor;
    const auto rows = *rc::gen::inRange<std::size_t>(0, 4);
    const auto columns = *rc::gen::inRange<std::size_t>(0, 4);
    tensor.shape = {rows, columns};
    if (*rc::gen::arbitrary<bool>()) {
      tensor.data = *rc::gen::container<std::vector<std::int64_t>>(
          rows * columns, rc::gen::arbitrary<std::int64_t>());
    } else {
      tensor.data = *rc::gen::container<std::vector<float>>(rows * columns, any_finite_float());
    }
    return tensor;
  });
}

LossFnOutput any_record() {
  LossFnOutput record;
  for (const char* field : {"logprobs", "a/b", "~"}) {
    if (*rc::gen::arbitrary<bool>()) record[field] = *any_tensor();
  }
  return record;
}

rc::Gen<ForwardBackwardOutput> any_output() {
  return rc::gen::exec([] {
    ForwardBackwardOutput output;
    output.loss_fn_output_type = *rc::gen::element<std::string>("TorchLossReturn", "", "a \"b\"\n");
    for (int left = *rc::gen::inRange(0, 4); left > 0; --left) {
      output.loss_fn_outputs.push_back(any_record());
    }
    for (const char* key : {"loss:mean", "n:sum", ""}) {
      if (*rc::gen::arbitrary<bool>()) output.metrics[key] = *rc::gen::arbitrary<double>();
    }
    return output;
  });
}

const char* const example = R"({
  "loss_fn_output_type": "TorchLossReturn",
  "loss_fn_outputs": [{"logprobs": {"data": [-0.5, 0.1], "dtype": "float32", "shape": [2]},
                       "tokens": {"data": [3, 4], "dtype": "int64", "shape": [1, 2]}}, {}],
  "metrics": {"e_max_violation:mean": 2.5}})";

std::string refusal(const json& value) {
  try {
    (void)value.get<ForwardBackwardOutput>();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "was read";
}

struct Refusal {
  std::string pointer;
  std::string value;
  std::string start;
};

/// The refusal of the example with the value at `pointer` replaced by the JSON text `value`.
std::string refusal(const std::string& pointer, const std::string& value) {
  json changed = json::parse(example);
  changed[json::json_pointer(pointer)] = json::parse(value);
  return refusal(changed);
}

void expect_starts_with(const std::string& text, const std::string& start) {
  EXPECT_EQ(text.substr(0, start.size()), start) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

// ---- Floats

RC_GTEST_PROP(ShortestDouble, ReadsBackAsTheSameFloatToTheBit, ()) {
  const float value = *any_finite_float();
  RC_ASSERT(bits(read_back(value)) == bits(value));
}

RC_GTEST_PROP(ShortestDouble, PrintsDecimalsOfSixDigitsAsTheyAre, ()) {
  const auto digits = *rc::gen::inRange(1, 1000000);
  const double decimal = digits / 1e6;
  RC_ASSERT(json(shortest_double(static_cast<float>(decimal))).dump() == json(decimal).dump());
}

TEST(ShortestDouble, KeepsTheExtremes) {
  using limits = std::numeric_limits<float>;
  for (const float value : {0.0f, -0.0f, limits::denorm_min(), limits::min(), limits::max(),
                            limits::lowest(), limits::epsilon(), 16777216.0f, 1e10f, 9e-40f}) {
    EXPECT_EQ(bits(read_back(value)), bits(value)) << value;
  }
  EXPECT_EQ(json(shortest_double(0.1f)).dump(), "0.1");
  EXPECT_TRUE(std::isnan(shortest_double(nan)));
}

// ---- Snapshots

TEST(Json, ASnapshotHasNullForEveryAbsentValue) {
  const DiagnosticsSnapshot snapshot{{{"blocks.10",
                                       {.expert_load_counts = {3, 1},
                                        .tokens = 4,
                                        .max_load_over_mean = 1.5,
                                        .zero_load_experts = 0,
                                        .biases = {0.1f, {}}}},
                                      {"blocks.2",
                                       {.expert_load_counts = {0},
                                        .tokens = 0,
                                        .max_load_over_mean = {},
                                        .zero_load_experts = {},
                                        .biases = {-0.0f}}}}};
  EXPECT_EQ(ordered_json(snapshot).dump(),
            R"({"blocks.10":{"expert_load_counts":[3,1],"tokens":4,"max_load_over_mean":1.5,)"
            R"("zero_load_experts":0,"biases":[0.1,null]},)"
            R"("blocks.2":{"expert_load_counts":[0],"tokens":0,"max_load_over_mean":null,)"
            R"("zero_load_experts":null,"biases":[-0.0]}})");
  EXPECT_EQ(json(snapshot), json::parse(ordered_json(snapshot).dump()));
  EXPECT_EQ(json(DiagnosticsSnapshot{}).dump(), "{}");
}

// ---- ForwardBackwardOutput

RC_GTEST_PROP(Json, AnOutputReadsBackAsItWas, ()) {
  const auto output = *any_output();
  const auto read = json::parse(json(output).dump()).get<ForwardBackwardOutput>();
  RC_ASSERT(read == output);
  RC_ASSERT(json(read).dump() == json(output).dump());  // to the bit: zeros keep their sign
  RC_ASSERT(json::parse(ordered_json(output).dump()) == json(output));
}

TEST(Json, AnOutputHasTheShapeOfItsSource) {
  const ForwardBackwardOutput output{
      .loss_fn_output_type = "TorchLossReturn",
      .loss_fn_outputs = {{{"logprobs", {.data = std::vector<float>{-0.5f, 0.1f}, .shape = {2}}},
                           {"tokens", {.data = std::vector<std::int64_t>{3, 4}, .shape = {1, 2}}}},
                          {}},
      .metrics = {{"e_max_violation:mean", 2.5}}};
  EXPECT_EQ(json(output), json::parse(example));
  EXPECT_EQ(json::parse(example).get<ForwardBackwardOutput>(), output);
}

TEST(Json, ANonfiniteNumberIsNullAndReadsBackAsNaN) {
  const ForwardBackwardOutput output{
      .loss_fn_output_type = "",
      .loss_fn_outputs = {{{"x", {.data = std::vector<float>{nan}, .shape = {1}}}}},
      .metrics = {{"loss:mean", std::numeric_limits<double>::infinity()}}};
  const json written = output;
  EXPECT_TRUE(written["metrics"]["loss:mean"].is_null());
  EXPECT_TRUE(written["loss_fn_outputs"][0]["x"]["data"][0].is_null());
  const auto read = written.get<ForwardBackwardOutput>();
  EXPECT_TRUE(std::isnan(read.metrics.at("loss:mean")));
  EXPECT_TRUE(std::isnan(std::get<std::vector<float>>(read.loss_fn_outputs[0].at("x").data)[0]));
}

TEST(Json, ATensorWithoutAShapeHasOneDimension) {
  const auto tensor = json::parse(R"({"data": [1, 2, 3], "dtype": "int64"})").get<TensorData>();
  EXPECT_EQ(tensor.shape, std::vector<std::size_t>{3});
  EXPECT_EQ(
      json::parse(R"({"data": [], "dtype": "float32", "shape": null})").get<TensorData>().shape,
      std::vector<std::size_t>{0});
}

TEST(Json, TheLargestFloatIsReadBackAndLargerOnesAreRefused) {
  const auto read = [](const std::string& number) {
    return std::get<std::vector<float>>(
        json::parse(R"({"data": [)" + number + R"(], "dtype": "float32"})").get<TensorData>().data)[0];
  };
  constexpr float largest = std::numeric_limits<float>::max();
  EXPECT_EQ(read(json(shortest_double(largest)).dump()), largest);  // its shortest decimal lies above it
  EXPECT_EQ(read("-3.4028235e38"), -largest);
  EXPECT_THROW(read("3.40282357e38"), std::invalid_argument);
  EXPECT_THROW(read("-1e39"), std::invalid_argument);
}

TEST(Json, AScalarHasTheEmptyShape) {
  EXPECT_TRUE(json::parse(R"({"data": [7], "dtype": "int64", "shape": []})")
                  .get<TensorData>()
                  .shape.empty());
}

TEST(Json, RefusalsBeginWithThePointerOfWhatIsWrong) {
  const std::string outputs = "/loss_fn_outputs", tensor = outputs + "/0/tokens";
  const std::vector<Refusal> refusals = {
      {"", "[]", "(top): is array, should be "},
      {"/loss_fn_output_type", "1", ": is number, should be "},
      {outputs, "{}", ": is object, should be "},
      {outputs + "/1", "3", ": is number, should be "},
      {outputs + "/1/a~1b", "3", ": is number, should be "},
      {"/metrics", "null", ": is null, should be "},
      {"/metrics/loss:mean", "\"1\"", ": is string, should be "},
      {"/more", "1", ": is no member of "},
      {tensor + "/dtype", "\"int32\"", ": is \"int32\", should be "},
      {tensor + "/data/1", "1.5", ": is number, should be an integer"},
      {tensor + "/data/1", "9223372036854775808", ": is number, should be an integer"},
      {tensor + "/data/0", "null", ": is null, should be an integer"},
      {tensor + "/sparse", "1", ": is no member of "},
      {outputs + "/0/logprobs/data/0", "1e39", ": 1e+39 is outside"},
      {outputs + "/1/x", R"({"data": []})", "/dtype: is missing from "},
  };
  for (const auto& [pointer, value, start] : refusals) {
    expect_starts_with(refusal(pointer, value), pointer + start);
  }
}

TEST(Json, RefusesAShapeThatIsNotOfTheValues) {
  const std::string pointer = "/loss_fn_outputs/0/tokens/shape";
  for (const char* shape :
       {"[3]", "[1,1]", "[0]", "[2,0]", "[4,1]", "[]", "[4611686018427387904,8,2]"}) {
    expect_starts_with(refusal(pointer, shape),
                       pointer + ": " + shape + " is no shape of 2 values");
  }
  expect_starts_with(refusal(pointer, "[-2,-1]"), pointer + "/0: is -2, should be ");
}

TEST(Json, RefusesWhatIsMissing) {
  for (const char* key : {"loss_fn_output_type", "loss_fn_outputs", "metrics"}) {
    json value = json::parse(example);
    value.erase(key);
    expect_starts_with(refusal(value), std::string("/") + key + ": is missing from ");
  }
}

}  // namespace
}  // namespace ballast
