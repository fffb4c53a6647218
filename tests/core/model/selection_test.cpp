#include "core/model/selection.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/assignment/chosen_experts.h"

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

TEST(CountAssignments, CountsEveryAssignmentOfFewAndOfManyExpertsAndNothingForNoExpert) {
  for (const std::size_t experts : {1, 8, 64, 65, 300}) {
    Matrix<std::int32_t> indices(37, 3);
    std::vector<std::int64_t> right(experts, 5);
    for (std::size_t i = 0; i < indices.values().size(); ++i) {
      const auto expert = static_cast<std::int32_t>(i * i % (experts + 1)) - 1;
      indices.values()[i] = expert;
      if (expert != no_expert) ++right[static_cast<std::size_t>(expert)];
    }
    std::vector<std::int64_t> counts(experts, 5);
    count_assignments(indices, {}, counts);
    EXPECT_EQ(counts, right) << experts;
  }
}

// ---- Group-limited top-k

Chosen chosen_in_groups(const std::vector<float>& scores, std::size_t top_k, const ExpertGroups& groups,
                        std::vector<float> biases = {}) {
  if (biases.empty()) biases.assign(scores.size(), 0.0f);
  const auto selection = select_group_limited_top_k<float>(row_of(scores), biases, top_k, groups);
  EXPECT_TRUE(selection.cutoffs.empty());
  const auto indices = selection.indices.row(0);
  return {indices.begin(), indices.end()};
}

// Group 0 has the best expert, group 1 the best two, group 2 the best three.
const std::vector<float> three_groups{0.9f, 0.0f, 0.0f, 0.6f, 0.5f, 0.0f, 0.5f, 0.5f, 0.5f};

TEST(GroupLimitedSelection, JudgesAGroupByItsTwoBestOrByItsShare) {
  const ExpertGroups two{.count = 3, .chosen = 1, .score = GroupScore::top_2};
  EXPECT_EQ(chosen_in_groups(three_groups, 1, two), (Chosen{3}));
  EXPECT_EQ(chosen_in_groups(three_groups, 3, two), (Chosen{3, 4, 5}));
  const ExpertGroups share{.count = 3, .chosen = 1, .score = GroupScore::top_share};
  EXPECT_EQ(chosen_in_groups(three_groups, 1, share), (Chosen{0}));
  EXPECT_EQ(chosen_in_groups(three_groups, 2, share), (Chosen{3, 4}));
  EXPECT_EQ(chosen_in_groups(three_groups, 3, share), (Chosen{6, 7, 8}));
}

TEST(GroupLimitedSelection, DividesTheShareDown) {
  const ExpertGroups share{.count = 3, .chosen = 2, .score = GroupScore::top_share};
  EXPECT_EQ(chosen_in_groups(three_groups, 3, share), (Chosen{0, 3, 4}));  // by their best 1 each
}

TEST(GroupLimitedSelection, ExcludesOtherGroupsEvenWhenTheChosenOnesAreNegative) {
  const ExpertGroups groups{.count = 2, .chosen = 1, .score = GroupScore::top_2};
  EXPECT_EQ(chosen_in_groups({-1, -2, -inf, 0, -9, -9}, 3, groups), (Chosen{0, 1, 2}));
}

TEST(GroupLimitedSelection, SeesBiasesInBothChoices) {
  const ExpertGroups groups{.count = 2, .chosen = 1, .score = GroupScore::top_2};
  EXPECT_EQ(chosen_in_groups({0.5f, 0.5f, 0.4f, 0.4f}, 1, groups, {0, 0, 0, 0.3f}), (Chosen{3}));
}

TEST(GroupLimitedSelection, GivesTiesToTheLowerGroupAndExpert) {
  const ExpertGroups groups{.count = 3, .chosen = 2, .score = GroupScore::top_2};
  EXPECT_EQ(chosen_in_groups({1, 1, 1, 1, 1, 1}, 3, groups), (Chosen{0, 1, 2}));
  EXPECT_EQ(chosen_in_groups({1, 2, 0, 0, 2, 1}, 2, groups), (Chosen{1, 4}));
}

TEST(GroupLimitedSelection, TakesAGroupOfNaNsLast) {
  const ExpertGroups groups{.count = 3, .chosen = 2, .score = GroupScore::top_2};
  EXPECT_EQ(chosen_in_groups({nan, 1, -inf, -inf, 0, 0}, 3, groups), (Chosen{4, 5, 2}));
  EXPECT_EQ(chosen_in_groups({nan, nan, nan, nan, nan, nan}, 2, groups), (Chosen{0, 1}));
}

// By sorting: group scores from the sorted values of each group, then the sorted experts of the best groups.
Chosen grouped_by_sorting(const std::vector<float>& values, std::size_t top_k, const ExpertGroups& groups) {
  const std::size_t size = values.size() / groups.count;
  std::vector<float> group_scores;
  for (std::size_t g = 0; g < groups.count; ++g) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(g * size);
    const std::vector<float> own(first, first + static_cast<std::ptrdiff_t>(size));
    const auto order = sorted(own);
    float sum = 0.0f;
    for (std::size_t i = 0; i < groups.scored(top_k); ++i) sum += own[static_cast<std::size_t>(order[i])];
    group_scores.push_back(sum);
  }
  auto best = sorted(group_scores);
  best.resize(groups.chosen);
  Chosen out;
  for (const std::int32_t j : sorted(values)) {
    const auto group = static_cast<std::int32_t>(static_cast<std::size_t>(j) / size);
    if (std::ranges::find(best, group) != best.end() && out.size() < top_k) out.push_back(j);
  }
  return out;
}

RC_GTEST_PROP(GroupLimitedSelection, IsThatOfTwoFullSorts, ()) {
  const auto size = *rc::gen::inRange<std::size_t>(2, 6);
  ExpertGroups groups{.count = *rc::gen::inRange<std::size_t>(2, 6)};
  groups.chosen = *rc::gen::inRange<std::size_t>(1, groups.count + 1);
  groups.score = *rc::gen::element(GroupScore::top_2, GroupScore::top_share);
  const std::size_t experts = groups.count * size;
  const auto top_k = *rc::gen::inRange<std::size_t>(1, groups.chosen * size + 1);
  RC_PRE(!problem(groups, experts, top_k));
  const auto scores = *rc::gen::container<std::vector<float>>(experts, score());
  RC_ASSERT(chosen_in_groups(scores, top_k, groups) == grouped_by_sorting(scores, top_k, groups));
}

RC_GTEST_PROP(GroupLimitedSelection, WithAllGroupsChosenIsPlainTopK, ()) {
  const auto scores = *rc::gen::container<std::vector<float>>(12, score());
  const ExpertGroups groups{.count = 4, .chosen = 4};
  RC_ASSERT(chosen_in_groups(scores, 5, groups) == chosen(scores, 5));
}

TEST(ExpertGroups, SaysWhatIsImpossible) {
  const auto why = [](const ExpertGroups& groups, std::size_t experts, std::size_t top_k) {
    return problem(groups, experts, top_k).value_or("");
  };
  EXPECT_EQ(why({}, 7, 7), "");
  EXPECT_EQ(why({.count = 8, .chosen = 4}, 256, 8), "");
  EXPECT_EQ(why({.count = 3}, 8, 1), "8 experts do not make 3 groups of one size");
  EXPECT_EQ(why({.count = 0}, 8, 1), "8 experts do not make 0 groups of one size");
  EXPECT_EQ(why({.count = 4, .chosen = 5}, 8, 1), "5 groups of a token are not within 1..4");
  EXPECT_EQ(why({.count = 4, .chosen = 0}, 8, 1), "0 groups of a token are not within 1..4");
  EXPECT_EQ(why({.count = 4, .chosen = 2}, 8, 5),
            "a token's 2 groups of 2 have fewer than its 5 experts");
  EXPECT_EQ(why({.count = 4, .chosen = 2}, 4, 1), "a group is scored by its 2 best experts and has 1");
  EXPECT_EQ(why({.count = 4, .chosen = 2, .score = GroupScore::top_share}, 8, 1),
            "top_share scores a group by its floor(1 / 2) = 0 best experts");
}

}  // namespace
}  // namespace ballast
