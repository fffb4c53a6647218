#include "core/kernels/kernels.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "core/arithmetic/functions.h"
#include "core/random/stream.h"
#include "tests/core/kernels/kernel_cases.h"
#include "tests/core/support/bits.h"

namespace ballast {
namespace {

using kernels::Kernels;
using kernels::Target;
using oracle::bits;
using namespace test;

const Kernels& reference() {
  return *kernels::available().front();
}

/// Every version this processor can run but the reference; the name of a test says which.
class EveryTarget : public testing::TestWithParam<const Kernels*> {
 protected:
  const Kernels& subject() const { return *GetParam(); }
};

std::string target_name(const testing::TestParamInfo<const Kernels*>& info) {
  return std::string(name(info.param->target));
}

std::vector<float> drawn_biases(std::size_t experts, Stream& stream) {
  std::vector<float> biases;
  for (std::size_t j = 0; j < experts; ++j)
    biases.push_back(static_cast<float>(0.2 * normal(stream)));
  return biases;
}

void expect_same_answer(const Kernels& subject, const RouteTrial& trial) {
  const RouteAnswer right = route_by(reference(), trial), given = route_by(subject, trial);
  EXPECT_EQ(bits(given.scores), bits(right.scores));
  EXPECT_EQ(given.indices, right.indices);
  EXPECT_EQ(bits(given.cutoffs), bits(right.cutoffs));
  EXPECT_EQ(bits(given.weights), bits(right.weights));
  EXPECT_EQ(bits(given.weight_sums), bits(right.weight_sums));
  EXPECT_EQ(given.finite, right.finite);
}

void expect_same(const Kernels& subject, RouteTrial trial) {
  expect_same_answer(subject, trial);
  if (!trial.sigmoid) return;
  SCOPED_TRACE("no scores wanted");
  trial.keeps_scores = false;
  expect_same_answer(subject, trial);
}

TEST_P(EveryTarget, RoutesEveryShapeAndKindOfRowAsTheReferenceDoes) {
  static constexpr KernelShape shapes[] = {
      {1, 1},   {2, 1},    {3, 2},    {5, 4},    {8, 1},     {8, 2},    {8, 3},
      {8, 4},   {8, 8},    {12, 3},   {16, 1},   {17, 8},    {33, 9},   {60, 4},
      {64, 6},  {64, 64},  {65, 12},  {100, 31}, {128, 8},   {160, 32}, {250, 11},
      {256, 8}, {300, 1},  {384, 24}, {896, 16}, {1000, 40}, {64, 4},   {70, 10},
      {90, 16}, {200, 17}, {400, 32}, {512, 33}, {97, 5}};
  std::uint64_t seed = 0;
  for (const auto [experts, top_k] : shapes) {
    for (const Draw draw : all_draws) {
      SCOPED_TRACE("E " + std::to_string(experts) + ", k " + std::to_string(top_k) + ", draw " +
                   std::to_string(static_cast<int>(draw)));
      Stream stream(++seed);
      RouteTrial trial{.logits = drawn_logits(37, experts, draw, seed),
                       .biases = drawn_biases(experts, stream),
                       .top_k = top_k};
      expect_same(subject(), trial);
      trial.sigmoid = false;
      trial.renormalize = false;
      trial.scale = 2.5f;
      trial.padding = 5;
      expect_same(subject(), trial);
      if (HasFailure()) return;
    }
  }
}

TEST_P(EveryTarget, RoutesByBiasesOfAnyKindAsTheReferenceDoes) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const auto [experts, top_k] : {KernelShape{8, 2}, {64, 6}, {300, 20}}) {
    RouteTrial trial{.logits = drawn_logits(40, experts, Draw::tied, 5),
                     .biases = std::vector<float>(experts),
                     .top_k = top_k};
    expect_same(subject(), trial);  // no biases: ties
    trial.biases[1] = -infinity;
    expect_same(subject(), trial);
    trial.biases[2] = std::numeric_limits<float>::quiet_NaN();
    expect_same(subject(), trial);
    trial.biases.assign(experts, -infinity);
    trial.biases[3] = infinity;
    expect_same(subject(), trial);
  }
}

TEST_P(EveryTarget, RoutesByBiasesOfAnySizeAsTheReferenceDoes) {
  for (const auto [experts, top_k] : {KernelShape{8, 2}, {64, 4}, {300, 16}, {896, 16}}) {
    for (const float size : {1e-3f, 0.1f, 30.0f, 1e4f, 1e5f, 4e5f, 1e6f, 1e9f, 1e38f}) {
      for (const Draw draw : {Draw::normal, Draw::close, Draw::tied}) {
        Stream stream(experts);
        RouteTrial trial{.logits = drawn_logits(37, experts, draw, experts),
                         .biases = drawn_biases(experts, stream),
                         .top_k = top_k};
        SCOPED_TRACE("E " + std::to_string(experts) + ", biases of about " + std::to_string(size));
        RouteTrial far_apart = trial;
        for (float& bias : far_apart.biases) bias *= 5.0f * size;
        expect_same(subject(), far_apart);
        for (float& bias : trial.biases) bias += size;  // all far from 0: s + b is rounded much
        expect_same(subject(), trial);
      }
    }
  }
}

// Estimates of their scores are NaN, infinite or of the wrong sign, and yet these experts win.
TEST_P(EveryTarget, ChoosesExpertsWithALogitFarFromZeroAndALargeBiasAsTheReferenceDoes) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const auto [experts, top_k] : {KernelShape{128, 8}, {256, 8}, {300, 3}, {896, 16}}) {
    for (const float x : {-86.0f, -87.5f, -88.0f, -88.5f, -88.73f, -89.0f, -89.2f, -89.4f, -89.5f,
                          -100.0f, -1e9f, -infinity, 86.0f, 87.5f, 87.99f, 88.0f, 88.05f, 89.0f,
                          1e9f, infinity, std::numeric_limits<float>::quiet_NaN()}) {
      SCOPED_TRACE("E " + std::to_string(experts) + ", x " + std::to_string(x));
      Stream stream(experts);
      RouteTrial trial{.logits = drawn_logits(37, experts, Draw::normal, experts),
                       .biases = drawn_biases(experts, stream),
                       .top_k = top_k};
      for (const std::size_t j : {std::size_t{3}, experts / 2, experts - 1}) {
        trial.biases[j] = 3.0f;
        for (std::size_t t = j % 2; t < 37; t += 2) trial.logits(t, j) = x;
      }
      expect_same(subject(), trial);
    }
  }
}

TEST_P(EveryTarget, PutsSignedZerosInTheOrderOfTheExpertsAndKeepsTheirSign) {
  for (const auto [experts, top_k] : {KernelShape{8, 3}, {80, 20}}) {
    RouteTrial trial{.logits = Matrix<float>(32, experts),
                     .biases = std::vector<float>(experts, -0.0f),
                     .top_k = top_k,
                     .sigmoid = false};
    Stream stream(6);
    for (float& z : trial.logits.values()) z = uniform(stream) < 0.5 ? 0.0f : -0.0f;
    expect_same(subject(), trial);
  }
}

/// Scores, or logits, with cutoffs and marks or none.
ScoreTile tile_of(const Matrix<float>& values, bool logits, const std::vector<float>& cutoffs,
                  const std::vector<std::uint8_t>& observed) {
  return {.tokens = values.rows(),
          .experts = values.cols(),
          .scores = logits ? nullptr : values.data(),
          .stride = values.cols(),
          .logits = logits ? values.data() : nullptr,
          .logits_stride = values.cols(),
          .cutoffs = cutoffs.empty() ? nullptr : cutoffs.data(),
          .observed = observed.empty() ? nullptr : observed.data()};
}

struct BinTrial {
  Matrix<float> scores;        ///< or logits
  std::vector<float> cutoffs;  ///< empty: the scores are r
  std::vector<std::uint8_t> observed;
  HistogramRange range;
  bool logits = false;
};

struct BinAnswer {
  std::vector<std::uint16_t> counts;
  std::int64_t below, above;
  friend bool operator==(const BinAnswer&, const BinAnswer&) = default;
};

BinAnswer bins_by(const Kernels& kernels, const BinTrial& trial) {
  const std::size_t experts = trial.scores.cols(), stride = trial.range.bins() + 3;
  BinAnswer answer{std::vector<std::uint16_t>(experts * stride), 0, 0};
  kernels::CountBins rows{
      .tile = tile_of(trial.scores, trial.logits, trial.cutoffs, trial.observed),
      .low = trial.range.low(),
      .high = trial.range.high(),
      .width = trial.range.width(),
      .bins = trial.range.bins(),
      .counts = answer.counts.data(),
      .counts_stride = stride};
  kernels.count_bins(rows);
  answer.below = rows.below;
  answer.above = rows.above;
  return answer;
}

TEST_P(EveryTarget, CountsFewExpertsAsTheyComeAndNoOtherIndex) {
  Stream stream(5);
  for (std::size_t experts = 1; experts <= kernels::count_few_max; ++experts) {
    for (const std::size_t size : {0, 1, 7, 16, 33, 1000}) {
      std::vector<std::int32_t> indices(size);
      for (auto& index : indices) index = static_cast<std::int32_t>(uniform(stream) * 20.0) - 2;
      if (size > 4) indices[3] = std::numeric_limits<std::int32_t>::min();
      std::vector<std::int64_t> counts(experts, 5), expected(experts, 5);
      for (std::size_t j = 0; j < experts; ++j) {
        expected[j] += std::ranges::count(indices, static_cast<std::int32_t>(j));
      }
      subject().count_few(indices.data(), indices.size(), counts.data(), experts);
      EXPECT_EQ(counts, expected) << size << " indices of " << experts;
    }
  }
}

TEST_P(EveryTarget, CountsInTheBinsOfTheDefinition) {
  Stream stream(7);
  for (const std::size_t experts : {1, 3, 8, 15, 16, 17, 64, 100}) {
    for (const std::size_t bins : {2, 7, 1000, 4096, 100000}) {
      SCOPED_TRACE(std::to_string(experts) + " experts, " + std::to_string(bins) + " bins");
      const auto biases = drawn_biases(experts, stream);
      BinTrial trial{.scores = Matrix<float>(200, experts),
                     .cutoffs = {},
                     .observed = {},
                     .range = HistogramRange(biases, bins)};
      for (float& s : trial.scores.values()) s = static_cast<float>(uniform(stream));
      for (std::size_t t = 0; t < 200; ++t)
        trial.cutoffs.push_back(static_cast<float>(1.2 * uniform(stream)));
      EXPECT_EQ(bins_by(subject(), trial), bins_by(reference(), trial));
      for (std::size_t t = 0; t < 200; ++t) trial.observed.push_back(uniform(stream) < 0.7);
      EXPECT_EQ(bins_by(subject(), trial), bins_by(reference(), trial));
    }
  }
}

TEST_P(EveryTarget, CountsBinsOfLogitsAsTheReferenceDoes) {
  for (const std::size_t experts : {1, 7, 16, 21, 32, 100}) {
    for (const std::size_t tokens : {1, 2, 3, 5, 64, 131}) {
      for (const Draw draw : {Draw::normal, Draw::wide, Draw::tied}) {
        SCOPED_TRACE("E " + std::to_string(experts) + ", " + std::to_string(tokens) +
                     " tokens, draw " + std::to_string(static_cast<int>(draw)));
        BinTrial trial{.scores = drawn_logits(tokens, experts, draw, experts + tokens),
                       .cutoffs = {},
                       .observed = {},
                       .range = HistogramRange(std::vector<float>{-0.2f, 0.31f}, 1000),
                       .logits = true};
        Stream stream(experts * tokens);
        for (std::size_t t = 0; t < tokens; ++t)
          trial.cutoffs.push_back(static_cast<float>(0.5 + 0.5 * normal(stream)));
        EXPECT_EQ(bins_by(subject(), trial), bins_by(reference(), trial));
        for (std::size_t t = 0; t < tokens; ++t) trial.observed.push_back(uniform(stream) < 0.6);
        trial.scores(tokens - 1, 0) = std::numeric_limits<float>::quiet_NaN();
        trial.observed.back() = 0;
        EXPECT_EQ(bins_by(subject(), trial), bins_by(reference(), trial));
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(EveryTarget, PutsWhatLiesOnOrBesideAnEdgeIntoTheRightBin) {
  for (const std::size_t bins : {10, 999, 1000, 4096}) {
    const HistogramRange range(std::vector<float>{-0.2f, 0.31f}, bins);
    std::vector<float> values;
    for (std::size_t edge = 0; edge <= bins; ++edge) {
      auto r = static_cast<float>(static_cast<double>(range.low()) +
                                  static_cast<double>(edge) * range.width());
      for (int step = 0; step < 3; ++step) r = std::nextafter(r, -10.0f);
      for (int step = 0; step < 7; ++step, r = std::nextafter(r, 10.0f)) values.push_back(r);
    }
    for (const float r : {-1e30f, -3.0f, 0.0f, 3.0f, 1e30f}) values.push_back(r);
    for (const std::size_t experts : {1, 16, 21}) {
      values.resize(values.size() / experts * experts);
      BinTrial trial{.scores = Matrix<float>(values.size() / experts, experts),
                     .cutoffs = {},
                     .observed = {},
                     .range = range};
      std::ranges::copy(values, trial.scores.values().begin());
      EXPECT_EQ(bins_by(subject(), trial), bins_by(reference(), trial))
          << bins << " bins, " << experts << " experts";
    }
  }
}

/// Values and intervals to collect from, as scores or as logits.
struct CollectTrial {
  Matrix<float> values;
  bool logits = false;
  std::vector<float> cutoffs = {}, low = {}, high = {};
  std::vector<std::uint8_t> observed = {};  ///< or none
};

/// What is below, and the bits of what is inside, in order.
std::pair<std::vector<std::int64_t>, std::vector<std::vector<std::uint32_t>>> collected_by(
    const Kernels& kernels, const CollectTrial& trial) {
  const std::size_t tokens = trial.values.rows(), experts = trial.values.cols();
  std::vector<std::vector<float>> inside(experts, std::vector<float>(tokens + 32));
  std::vector<float*> ends;
  for (auto& each : inside) ends.push_back(each.data());
  std::vector<std::int64_t> below(experts);
  kernels.collect_inside(
      {.tile = tile_of(trial.values, trial.logits, trial.cutoffs, trial.observed),
       .low = trial.low.data(),
       .high = trial.high.data(),
       .below = below.data(),
       .ends = ends.data()});
  std::vector<std::vector<std::uint32_t>> collected;
  for (std::size_t j = 0; j < experts; ++j) {
    inside[j].resize(static_cast<std::size_t>(ends[j] - inside[j].data()));
    std::ranges::sort(inside[j]);
    collected.push_back(bits(inside[j]));
  }
  return {below, collected};
}

TEST_P(EveryTarget, CountsBelowAndCollectsInsideAsTheReferenceDoes) {
  Stream stream(8);
  for (const std::size_t experts : {1, 5, 8, 16, 19, 64}) {
    constexpr std::size_t tokens = 75;
    CollectTrial trial{.values = Matrix<float>(tokens, experts)};
    for (float& s : trial.values.values())
      s = static_cast<float>(std::floor(50.0 * uniform(stream)) / 50.0);
    for (std::size_t t = 0; t < tokens; ++t)
      trial.cutoffs.push_back(static_cast<float>(std::floor(50.0 * uniform(stream)) / 50.0));
    for (std::size_t j = 0; j < experts; ++j) {
      trial.low.push_back(static_cast<float>(uniform(stream) - 0.7));
      trial.high.push_back(trial.low.back() + static_cast<float>(0.5 * uniform(stream)));
    }
    trial.low[0] = -std::numeric_limits<float>::infinity();
    EXPECT_EQ(collected_by(subject(), trial), collected_by(reference(), trial)) << experts;
    for (std::size_t t = 0; t < tokens; ++t) trial.observed.push_back(uniform(stream) < 0.8);
    EXPECT_EQ(collected_by(subject(), trial), collected_by(reference(), trial)) << experts;
  }
}

/// Intervals begin and end at values that there are, and far from 0, where values are rounded much.
TEST_P(EveryTarget, CollectsFromLogitsAsTheReferenceDoes) {
  for (const std::size_t experts : {1, 8, 16, 21, 256}) {
    for (const Draw draw : {Draw::normal, Draw::wide, Draw::tied, Draw::close}) {
      for (const float base : {0.0f, 3.0f, 1e5f, -1e6f}) {
        SCOPED_TRACE("E " + std::to_string(experts) + ", draw " +
                     std::to_string(static_cast<int>(draw)) + ", base " + std::to_string(base));
        constexpr std::size_t tokens = 300;
        CollectTrial trial{.values = drawn_logits(tokens, experts, draw, experts), .logits = true};
        Stream stream(experts);
        for (std::size_t t = 0; t < tokens; ++t)
          trial.cutoffs.push_back(base + static_cast<float>(0.1 * normal(stream)));
        const auto some_value = [&](std::size_t j) {
          const std::size_t t = uniform_index(stream, tokens);
          return trial.cutoffs[t] - arithmetic::sigmoid(trial.values(t, j));
        };
        for (std::size_t j = 0; j < experts; ++j) {
          const auto [low, high] = std::minmax({some_value(j), some_value(j)});
          trial.low.push_back(low);
          trial.high.push_back(j % 3 == 0 ? low : high);
        }
        trial.low.back() = -std::numeric_limits<float>::infinity();
        trial.high.front() = std::numeric_limits<float>::infinity();
        EXPECT_EQ(collected_by(subject(), trial), collected_by(reference(), trial));
        for (std::size_t t = 0; t < tokens; ++t) trial.observed.push_back(uniform(stream) < 0.5);
        EXPECT_EQ(collected_by(subject(), trial), collected_by(reference(), trial));
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(EveryTarget, FindsOrderStatisticsOfAnyValues) {
  Stream stream(9);
  for (const std::size_t count : {1, 2, 23, 24, 25, 100, 1000, 5000}) {
    for (int kind = 0; kind < 5; ++kind) {
      std::vector<float> values;
      for (std::size_t i = 0; i < count; ++i) {
        const double u = uniform(stream);
        const double drawn = kind == 0   ? u - 0.5
                             : kind == 1 ? std::floor(4 * u)
                             : kind == 2 ? 1.0
                             : kind == 3 ? static_cast<double>(i)
                                         : std::pow(2.0, -140.0 * u);
        values.push_back(static_cast<float>(drawn));
      }
      auto sorted = values;
      std::ranges::sort(sorted);
      for (const std::size_t position : {std::size_t{0}, count / 7, count / 2, count - 1}) {
        auto work = values;
        work.resize(count + 16);
        std::vector<float> scratch(count + 16);
        const float given = subject().order_statistic(work.data(), scratch.data(), count, position);
        EXPECT_EQ(std::bit_cast<std::uint32_t>(given),
                  std::bit_cast<std::uint32_t>(sorted[position]))
            << count << " of kind " << kind << " at " << position;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, EveryTarget,
                         testing::ValuesIn(std::vector<const Kernels*>(
                             kernels::available().begin() + 1, kernels::available().end())),
                         target_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EveryTarget);

TEST(Kernels, AreThoseOfTheWidestTargetUnlessLimited) {
  EXPECT_EQ(&kernels::active(), kernels::available().back());
  kernels::limit_target(Target::scalar);
  EXPECT_EQ(kernels::active().target, Target::scalar);
  kernels::limit_target(Target::avx512);
  EXPECT_EQ(&kernels::active(), kernels::available().back());
}

bool same(const RouteAnswer& a, const RouteAnswer& b) {
  return bits(a.scores) == bits(b.scores) && a.indices == b.indices &&
         bits(a.cutoffs) == bits(b.cutoffs) && bits(a.weights) == bits(b.weights) &&
         bits(a.weight_sums) == bits(b.weight_sums) && a.finite == b.finite;
}

/// Some 16384 logits: most often of few experts, every eighth time of one of the wide shapes.
RouteTrial drawn_trial(std::uint64_t seed) {
  static constexpr KernelShape wide[] = {{64, 6}, {256, 8}, {896, 16}};
  Stream stream = Stream(seed).child("trial");
  KernelShape shape = wide[seed / 8 % 3];
  if (seed % 8 != 0) {
    shape.experts = 1 + uniform_index(stream, 16);
    shape.top_k = 1 + uniform_index(stream, shape.experts);
  }
  const Draw draw = all_draws[uniform_index(stream, std::size(all_draws))];
  RouteTrial trial{.logits = drawn_logits(16384 / shape.experts, shape.experts, draw, seed),
                   .biases = drawn_biases(shape.experts, stream),
                   .top_k = shape.top_k};
  trial.sigmoid = uniform(stream) < 0.75;
  trial.renormalize = uniform(stream) < 0.75;
  trial.padding = uniform_index(stream, 3);
  trial.keeps_scores = !trial.sigmoid || uniform(stream) < 0.25;
  return trial;
}

/// Runs for minutes on two threads; on request: --gtest_also_run_disabled_tests
/// --gtest_filter='*HundredMillionRows*'
TEST(Kernels, DISABLED_OfEveryTargetRouteHundredMillionRowsAsTheReferenceDoes) {
  std::atomic<std::uint64_t> rows = 0, next_seed = 1, wrong_seed = 0;
  const auto work = [&] {
    while (rows < 100'000'000 && wrong_seed == 0) {
      const std::uint64_t seed = next_seed++;
      const RouteTrial trial = drawn_trial(seed);
      const RouteAnswer right = route_by(reference(), trial);
      for (const Kernels* const kernels : kernels::available()) {
        if (!same(route_by(*kernels, trial), right)) wrong_seed = seed;
      }
      rows += trial.logits.rows();
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_GE(rows, 100'000'000u);
  EXPECT_EQ(wrong_seed, 0u);
  if (wrong_seed == 0) return;
  for (const Kernels* const kernels : kernels::available())
    expect_same(*kernels, drawn_trial(wrong_seed));
}

}  // namespace
}  // namespace ballast
