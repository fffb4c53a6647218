#include "core/model/selection.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace ballast {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float inf = std::numeric_limits<float>::infinity();

Matrix<float> row_of(const std::vector<float>& values) {
  Matrix<float> matrix(1, values.size());
  std::ranges::copy(values, matrix.row(0).begin());
  return matrix;
}

std::vector<std::int32_t> chosen(const std::vector<float>& scores, std::size_t top_k,
                                 std::vector<float> biases = {}) {
  if (biases.empty()) biases.assign(scores.size(), 0.0f);
  const Matrix<float> row = row_of(scores);
  const auto selection = select_top_k<float>(row, biases, top_k);
  const auto indices = selection.indices.row(0);
  return {indices.begin(), indices.end()};
}

/// The total order by a full sort: value descending, NaN last, equal values by index.
std::vector<std::int32_t> sorted(const std::vector<float>& values) {
  std::vector<std::int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::int32_t a, std::int32_t b) {
    const float x = values[static_cast<std::size_t>(a)], y = values[static_cast<std::size_t>(b)];
    if (std::isnan(x) || std::isnan(y)) return !std::isnan(x) && std::isnan(y);
    return x > y;
  });
  return order;
}

using Chosen = std::vector<std::int32_t>;

TEST(Selection, EqualValuesGoToTheLowerIndex) {
  EXPECT_EQ(chosen({1, 1, 1, 1}, 2), (Chosen{0, 1}));
  EXPECT_EQ(chosen({0, 1, 2, 2, 1}, 3), (Chosen{2, 3, 1}));
}

TEST(Selection, SignedZerosAreEqual) {
  EXPECT_EQ(chosen({-0.0f, 0.0f, -0.0f}, 2), (Chosen{0, 1}));
  EXPECT_EQ(chosen({0.0f, -0.0f, 0.0f}, 2), (Chosen{0, 1}));
}

TEST(Selection, NaNComesAfterMinusInfinity) {
  EXPECT_EQ(chosen({nan, -inf, nan, 0.0f}, 2), (Chosen{3, 1}));
  EXPECT_EQ(chosen({nan, -inf, nan, 0.0f}, 3), (Chosen{3, 1, 0}));
  EXPECT_EQ(chosen({nan, nan, nan}, 2), (Chosen{0, 1}));
  EXPECT_EQ(chosen({nan, inf, 1.0f}, 2), (Chosen{1, 2}));
}

TEST(Selection, AddsTheBiasToTheScore) {
  EXPECT_EQ(chosen({0.9f, 0.5f, 0.1f}, 1, {0, 0, 1}), (Chosen{2}));
}

TEST(Selection, CutoffIsTheNextBestBiasedScore) {
  const Matrix<float> row = row_of({0.9f, 0.5f, 0.1f, 0.7f});
  const auto selection = select_top_k<float>(row, std::vector<float>{0, 0, 0.5f, 0}, 2);
  EXPECT_EQ(selection.cutoffs, (std::vector<float>{0.1f + 0.5f}));
}

TEST(Selection, CutoffIsAbsentWhenEveryExpertIsChosen) {
  const Matrix<float> row = row_of({0.1f, 0.2f});
  const auto selection = select_top_k<float>(row, std::vector<float>(2), 2);
  EXPECT_TRUE(selection.cutoffs.empty());
  EXPECT_EQ(selection.indices(0, 0), 1);
}

rc::Gen<float> score() {
  return rc::gen::weightedOneOf<float>(
      {{4, rc::gen::map(rc::gen::inRange(-3, 4), [](int i) { return static_cast<float>(i) / 4.0f; })},
       {2, rc::gen::element(0.0f, -0.0f, 1.0f, std::nextafter(1.0f, 0.0f), inf, -inf, nan, 1e-45f)},
       {2, rc::gen::map(rc::gen::arbitrary<int>(), [](int i) { return static_cast<float>(i) * 1e-9f; })}});
}

RC_GTEST_PROP(Selection, IsTheBeginningOfAFullSort, ()) {
  const auto scores = *rc::gen::nonEmpty(rc::gen::container<std::vector<float>>(score()));
  const auto biases = *rc::gen::container<std::vector<float>>(scores.size(), rc::gen::element(0.0f, 0.25f, -0.5f));
  const auto top_k = *rc::gen::inRange<std::size_t>(1, scores.size() + 1);
  std::vector<float> biased(scores.size());
  for (std::size_t j = 0; j < scores.size(); ++j) biased[j] = scores[j] + biases[j];
  const auto order = sorted(biased);
  RC_ASSERT(chosen(scores, top_k, biases) == Chosen(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(top_k)));
  if (top_k < scores.size()) {
    const Matrix<float> row = row_of(scores);
    const float cutoff = select_top_k<float>(row, biases, top_k).cutoffs[0];
    const float expected = biased[static_cast<std::size_t>(order[top_k])];
    RC_ASSERT(cutoff == expected || (std::isnan(cutoff) && std::isnan(expected)));
  }
}

TEST(Selection, CountsTheAssignmentsOfValidRows) {
  Matrix<std::int32_t> indices(3, 2);
  std::ranges::copy(std::vector<std::int32_t>{0, 2, 2, 1, 2, 0}, indices.values().begin());
  std::vector<std::int64_t> counts(4, 0);
  count_assignments(indices, std::vector<std::uint8_t>{1, 0, 1}, counts);
  EXPECT_EQ(counts, (std::vector<std::int64_t>{2, 0, 2, 0}));
  count_assignments(indices, {}, counts);
  EXPECT_EQ(counts, (std::vector<std::int64_t>{4, 1, 5, 0}));
}

}  // namespace
}  // namespace ballast
