#include "core/metrics/combine.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace ballast {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

using Chunks = std::vector<ForwardBackwardOutput>;

LossFnOutput datum(std::int64_t id) {
  return {{"id", TensorData{.data = std::vector<std::int64_t>{id}, .shape = {1}}}};
}

ForwardBackwardOutput chunk(std::size_t data, Metrics metrics) {
  return {.loss_fn_output_type = "TorchLossReturn",
          .loss_fn_outputs = std::vector<LossFnOutput>(data, datum(0)),
          .metrics = std::move(metrics)};
}

double combined(const std::string& key, const std::vector<std::pair<std::size_t, double>>& chunks) {
  Chunks all;
  for (const auto& [data, value] : chunks) all.push_back(chunk(data, {{key, value}}));
  return combine(all).metrics.at(key);
}

std::string refusal(const Chunks& chunks) {
  try {
    combine(chunks);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

/// Chunks with equal keys and small integers for values, whose sums are exact in any order.
rc::Gen<Chunks> any_chunks() {
  return rc::gen::exec([] {
    Chunks chunks;
    std::int64_t id = 0;
    for (int left = *rc::gen::inRange(1, 6); left > 0; --left) {
      auto& out = chunks.emplace_back(chunk(0, {}));
      for (int data = *rc::gen::inRange(1, 4); data > 0; --data)
        out.loss_fn_outputs.push_back(datum(id++));
      for (const char* key : {"a:mean", "b:slack", "c:sum", "d:min", "e:max", "f:hash_unordered"}) {
        out.metrics[key] = *rc::gen::inRange(-20, 20);
      }
    }
    return chunks;
  });
}

// ---- Laws

RC_GTEST_PROP(Combine, TheOrderOfChunksChangesNoMetric, ()) {
  const auto chunks = *any_chunks();
  auto turned = chunks;
  std::rotate(turned.begin(),
              turned.begin() + *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(chunks)),
              turned.end());
  if (*rc::gen::arbitrary<bool>()) std::reverse(turned.begin(), turned.end());
  RC_ASSERT(combine(turned).metrics == combine(chunks).metrics);
}

RC_GTEST_PROP(Combine, EveryReductionIsItsDefinition, ()) {
  const auto chunks = *any_chunks();
  double weight = 0, weighted = 0, slack_weighted = 0, sum = 0;
  double min = infinity, max = -infinity, slack_max = -infinity;
  for (const auto& c : chunks) {
    const auto data = static_cast<double>(c.loss_fn_outputs.size());
    weight += data;
    weighted += data * c.metrics.at("a:mean");
    slack_weighted += data * c.metrics.at("b:slack");
    slack_max = std::max(slack_max, c.metrics.at("b:slack"));
    sum += c.metrics.at("c:sum");
    min = std::min(min, c.metrics.at("d:min"));
    max = std::max(max, c.metrics.at("e:max"));
  }
  const auto metrics = combine(chunks).metrics;
  RC_ASSERT(metrics.at("a:mean") == weighted / weight);
  RC_ASSERT(metrics.at("b:slack") == slack_max - slack_weighted / weight);
  RC_ASSERT(metrics.at("c:sum") == sum);
  RC_ASSERT(metrics.at("d:min") == min);
  RC_ASSERT(metrics.at("e:max") == max);
}

RC_GTEST_PROP(Combine, RecordsAreConcatenatedInChunkOrder, ()) {
  const auto chunks = *any_chunks();
  const auto outputs = combine(chunks).loss_fn_outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    RC_ASSERT(outputs[i] == datum(static_cast<std::int64_t>(i)));
  const auto data =
      std::accumulate(chunks.begin(), chunks.end(), std::size_t{0},
                      [](std::size_t n, const auto& c) { return n + c.loss_fn_outputs.size(); });
  RC_ASSERT(outputs.size() == data);
}

RC_GTEST_PROP(Combine, ASingleChunkStaysAsItIsToTheBit, (double value, unsigned char data)) {
  const Chunks single = {chunk(data + 1u, {{"a:mean", value},
                                           {"a:sum", value},
                                           {"a:min", value},
                                           {"a:max", value},
                                           {"a:unique", value}})};
  RC_ASSERT(combine(single) == single[0]);
}

RC_GTEST_PROP(Combine, EqualValuesKeepTheirMeanToTheBit, (double value)) {
  RC_ASSERT(combined("a:mean", {{1, value}, {2, value}, {4, value}}) == value);
  RC_ASSERT(combined("a:slack", {{1, value}, {2, value}, {4, value}}) == 0.0);
}

RC_GTEST_PROP(Combine, SlackIsNeverNegative, (double a, double b, unsigned char n)) {
  RC_ASSERT(combined("a:slack", {{1, a}, {n, b}}) >= 0.0);
}

RC_GTEST_PROP(Combine, SplittingEvenlyKeepsTheMean, ()) {
  const auto values = *rc::gen::container<std::vector<int>>(12, rc::gen::inRange(-100, 100));
  const auto parts = *rc::gen::element<std::size_t>(1, 2, 3, 4, 6, 12);
  const std::size_t size = values.size() / parts;
  Chunks chunks;
  for (std::size_t begin = 0; begin < values.size(); begin += size) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(begin);
    const double sum = std::accumulate(first, first + static_cast<std::ptrdiff_t>(size), 0);
    chunks.push_back(chunk(size, {{"loss:mean", sum / static_cast<double>(size)}}));
  }
  const double mean = std::accumulate(values.begin(), values.end(), 0) / 12.0;
  RC_ASSERT(std::abs(combine(chunks).metrics.at("loss:mean") - mean) <= 1e-13);
}

RC_GTEST_PROP(Combine, HashesAgreeExactlyForEqualMultisetsOfIntegers, ()) {
  const auto values = *rc::gen::container<std::vector<int>>(3, rc::gen::inRange(-3, 3));
  const auto others = *rc::gen::container<std::vector<int>>(3, rc::gen::inRange(-3, 3));
  const auto hash = [](const std::vector<int>& xs) {
    std::vector<std::pair<std::size_t, double>> chunks;
    for (const int x : xs) chunks.emplace_back(1, x);
    return combined("h:hash_unordered", chunks);
  };
  const bool equal =
      std::is_permutation(values.begin(), values.end(), others.begin(), others.end());
  RC_ASSERT((hash(values) == hash(others)) == equal);
}

// ---- Edge cases

TEST(Combine, NoChunksGiveAnEmptyOutput) {
  EXPECT_EQ(combine({}), ForwardBackwardOutput{});
}

TEST(Combine, TheTypeIsTheFirstChunks) {
  Chunks chunks = {chunk(1, {}), chunk(1, {})};
  chunks[1].loss_fn_output_type = "ArrayRecord";
  EXPECT_EQ(combine(chunks).loss_fn_output_type, "TorchLossReturn");
}

TEST(Combine, ChunksWeighAsMuchAsTheyHaveData) {
  EXPECT_EQ(combined("loss:mean", {{3, 1.0}, {1, 5.0}}), 2.0);
  EXPECT_EQ(combined("loss:slack", {{3, 1.0}, {1, 5.0}}), 3.0);
  EXPECT_EQ(combined("loss:mean", {{2, 1.0}, {0, 5.0}}), 1.0);
  EXPECT_EQ(combined("loss:slack", {{2, 1.0}, {0, 5.0}}), 4.0);
}

TEST(Combine, TheMeanOfChunkViolationsIsNotThePooledViolation) {
  const std::vector<std::int64_t> first = {4, 0}, second = {0, 4}, pooled = {4, 4};
  const double of_chunks =
      combined("e_max_violation:mean",
               {{1, load_metrics(first)->max_violation}, {1, load_metrics(second)->max_violation}});
  EXPECT_GT(of_chunks, load_metrics(pooled)->max_violation);
}

TEST(Combine, KeepsTheFirstChunksKeysThatAllOthersHave) {
  const Chunks chunks = {chunk(1, {{"all:sum", 1.0}, {"only_first:sum", 1.0}}),
                         chunk(1, {{"all:sum", 2.0}, {"extra:sum", 1.0}, {"malformed", 1.0}})};
  EXPECT_EQ(combine(chunks).metrics, (Metrics{{"all:sum", 3.0}}));
}

TEST(Combine, DropsUnknownReductions) {
  const Chunks chunks = {
      chunk(1, {{"a:median", 1.0}, {"b:", 1.0}, {"c:Mean", 1.0}, {"d: mean", 1.0}})};
  EXPECT_EQ(combine(chunks).metrics, Metrics{});
}

TEST(Combine, AnEmptyNameIsAName) {
  EXPECT_EQ(combined(":sum", {{1, 2.0}, {1, 3.0}}), 5.0);
}

TEST(Combine, UniqueKeepsEveryValueUnderANumberedKey) {
  const Chunks chunks = {chunk(1, {{"rank:unique", 7.0}}), chunk(1, {{"rank:unique", 7.0}}),
                         chunk(0, {{"rank:unique", -0.5}})};
  EXPECT_EQ(combine(chunks).metrics,
            (Metrics{{"rank:unique", 7.0}, {"rank:unique_1", 7.0}, {"rank:unique_2", -0.5}}));
}

TEST(Combine, CombiningAgainDropsTheNumberedKeysAndLosesSlackAndHash) {
  const Metrics a = {{"h:hash_unordered", 3.0}, {"r:unique", 1.0}, {"t:slack", 1.0}};
  const Metrics b = {{"h:hash_unordered", 4.0}, {"r:unique", 2.0}, {"t:slack", 5.0}};
  const Chunks once = {combine(Chunks{chunk(1, a), chunk(1, b)})};
  const auto twice = combine(once).metrics;
  EXPECT_EQ(once[0].metrics.at("r:unique_1"), 2.0);
  EXPECT_FALSE(twice.contains("r:unique_1"));
  EXPECT_EQ(once[0].metrics.at("t:slack"), 2.0);
  EXPECT_EQ(twice.at("t:slack"), 0.0);
  EXPECT_NE(twice.at("h:hash_unordered"), once[0].metrics.at("h:hash_unordered"));
}

TEST(Combine, NaNIsNeverHiddenWhereverItStands) {
  for (const char* key : {"a:mean", "a:slack", "a:sum", "a:min", "a:max"}) {
    EXPECT_TRUE(std::isnan(combined(key, {{1, nan}, {1, 1.0}}))) << key;
    EXPECT_TRUE(std::isnan(combined(key, {{1, 1.0}, {1, nan}}))) << key;
    EXPECT_TRUE(std::isnan(combined(key, {{1, 1.0}, {0, nan}}))) << key;
  }
}

TEST(Combine, InfinitiesFollowTheArithmetic) {
  EXPECT_EQ(combined("a:mean", {{1, infinity}, {1, 1.0}}), infinity);
  EXPECT_EQ(combined("a:max", {{1, infinity}, {1, 1.0}}), infinity);
  EXPECT_EQ(combined("a:min", {{1, infinity}, {1, 1.0}}), 1.0);
  EXPECT_TRUE(std::isnan(combined("a:mean", {{1, infinity}, {1, -infinity}})));
  EXPECT_TRUE(std::isnan(combined("a:mean", {{0, infinity}, {1, 1.0}})));
}

TEST(Combine, ZerosArePositive) {
  for (const char* key : {"a:mean", "a:slack", "a:sum", "a:min", "a:max"}) {
    EXPECT_FALSE(std::signbit(combined(key, {{1, -0.0}, {1, -0.0}}))) << key;
  }
}

TEST(Combine, HashCutsToIntegersTowardsZero) {
  const double hash = combined("h:hash_unordered", {{1, 2.0}, {1, 0.0}});
  EXPECT_EQ(combined("h:hash_unordered", {{1, 2.9}, {1, -0.9}}), hash);
  EXPECT_EQ(combined("h:hash_unordered", {{1, -0.0}, {1, 2.0}}), hash);
  EXPECT_NE(combined("h:hash_unordered", {{1, 2.0}}),
            combined("h:hash_unordered", {{1, 2.0}, {1, 2.0}}));
}

TEST(Combine, HashIsAnExactIntegerThatNeverChanges) {
  EXPECT_EQ(combined("h:hash_unordered", {{1, 1.0}, {1, 2.0}, {1, 3.0}}), 4480599840622048.0);
  EXPECT_EQ(combined("h:hash_unordered", {{1, 1e300}}), 8984454807581059.0);
}

TEST(Combine, RefusesAMeanWithoutAnyData) {
  for (const char* key : {"loss:mean", "loss:slack"}) {
    const auto why = refusal({chunk(0, {{key, 1.0}}), chunk(0, {{key, 2.0}})});
    EXPECT_NE(why.find(std::string("\"") + key + "\""), std::string::npos) << why;
  }
  // Not asked for a mean, no weights are needed; and a key that another chunk lacks is not looked
  // at.
  EXPECT_EQ(
      combine(Chunks{chunk(0, {{"n:sum", 1.0}}), chunk(0, {{"n:sum", 2.0}})}).metrics.at("n:sum"),
      3.0);
  EXPECT_EQ(combine(Chunks{chunk(0, {{"loss:mean", 1.0}}), chunk(0, {})}).metrics, Metrics{});
}

TEST(Combine, RefusesAKeyOfTheFirstChunkWithoutExactlyOneColon) {
  for (const char* key : {"loss", "a:b:mean", "::", ""}) {
    const auto why = refusal({chunk(1, {{key, 1.0}}), chunk(1, {})});
    EXPECT_NE(why.find(std::string("metric \"") + key + "\" of chunk 0: "), std::string::npos)
        << why;
    EXPECT_EQ(why.find('\n'), std::string::npos);
  }
}

TEST(Combine, RefusesAHashOfWhatIsNoInteger) {
  for (const double value : {nan, infinity, -infinity}) {
    const auto why =
        refusal({chunk(1, {{"h:hash_unordered", 1.0}}), chunk(1, {{"h:hash_unordered", value}})});
    EXPECT_NE(why.find("metric \"h:hash_unordered\" of chunk 1: "), std::string::npos) << why;
  }
}

}  // namespace
}  // namespace ballast
