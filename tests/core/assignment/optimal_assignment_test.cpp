#include "core/assignment/optimal_assignment.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "core/model/selection.h"
#include "tests/core/support/matrices.h"
#include "tests/core/support/random_matrix.h"
#include "tests/core/support/routing_cases.h"

namespace ballast {
namespace {

using oracle::matrix;

double total(const Matrix<float>& scores, const Matrix<std::int32_t>& indices) {
  double sum = 0.0;
  for (std::size_t t = 0; t < indices.rows(); ++t) {
    for (const std::int32_t j : indices.row(t)) sum += static_cast<double>(scores(t, static_cast<std::size_t>(j)));
  }
  return sum;
}

std::vector<std::int64_t> loads_of(const Matrix<std::int32_t>& indices, std::size_t experts,
                                   std::span<const std::uint8_t> valid = {}) {
  std::vector<std::int64_t> loads(experts);
  count_assignments(indices, valid, loads);
  return loads;
}

bool is_balanced(const std::vector<std::int64_t>& loads) {
  const auto [least, most] = std::ranges::minmax(loads);
  return most - least <= 1;
}

/// The largest total of all balanced assignments, by trying every one.
class Exhaustive {
 public:
  Exhaustive(const Matrix<float>& scores, std::size_t top_k)
      : scores_(scores),
        top_k_(top_k),
        least_(static_cast<std::int64_t>(scores.rows() * top_k / scores.cols())),
        most_(static_cast<std::int64_t>((scores.rows() * top_k + scores.cols() - 1) / scores.cols())),
        loads_(scores.cols()) {}

  double best() {
    assign(0, 0, 0, 0.0);
    return best_;
  }

 private:
  void assign(std::size_t token, std::size_t expert, std::size_t chosen, double sum) {
    if (token == scores_.rows()) {
      if (std::ranges::all_of(loads_, [&](auto load) { return load >= least_; })) best_ = std::max(best_, sum);
    } else if (chosen == top_k_) {
      assign(token + 1, 0, 0, sum);
    } else if (expert < scores_.cols()) {
      assign(token, expert + 1, chosen, sum);
      if (loads_[expert] == most_) return;
      ++loads_[expert];
      assign(token, expert + 1, chosen + 1, sum + static_cast<double>(scores_(token, expert)));
      --loads_[expert];
    }
  }

  const Matrix<float>& scores_;
  std::size_t top_k_;
  std::int64_t least_, most_;
  std::vector<std::int64_t> loads_;
  double best_ = -std::numeric_limits<double>::infinity();
};

// Golden example E of the fact sheet: the balanced optimum is 2.75.
TEST(OptimalAssignment, GivesTheHandExample) {
  const auto scores = matrix({{0.9f, 0.5f}, {0.8f, 0.7f}, {0.7f, 0.2f}, {0.6f, 0.45f}});
  const auto indices = assign_optimally<float>(scores, {}, 1);
  EXPECT_NEAR(total(scores, indices), 2.75, 1e-6);
  EXPECT_EQ(loads_of(indices, 2), (std::vector<std::int64_t>{2, 2}));
}

RC_GTEST_PROP(OptimalAssignment, IsTheBestOfAllBalancedAssignments, ()) {
  const auto c = oracle::drawn_routing_case(5, 4);
  const auto indices = assign_optimally<float>(c.scores, {}, c.top_k);
  RC_ASSERT(is_balanced(loads_of(indices, c.experts())));
  for (std::size_t t = 0; t < c.tokens(); ++t) {
    const auto row = indices.row(t);
    RC_ASSERT(std::set<std::int32_t>(row.begin(), row.end()).size() == c.top_k);
  }
  // Scores are multiples of 2^-12, so all sums are exact.
  RC_ASSERT(total(c.scores, indices) == Exhaustive(c.scores, c.top_k).best());
}

// Weak duality (algorithms.md 2.1): sum max(0, s - alpha - beta) + k sum alpha + q sum beta bounds every balanced
// total, with any beta and alpha the k-th largest s - beta. With q an integer the best beta attains it.
RC_GTEST_PROP(OptimalAssignment, StaysBelowEveryDualValue, ()) {
  const auto c = oracle::drawn_routing_case(40, 8);
  RC_PRE(c.tokens() * c.top_k % c.experts() == 0);
  const double q = static_cast<double>(c.tokens() * c.top_k / c.experts());
  double dual = 0.0;
  for (std::size_t t = 0; t < c.tokens(); ++t) {
    std::vector<double> reduced;
    for (std::size_t j = 0; j < c.experts(); ++j) {
      reduced.push_back(static_cast<double>(c.scores(t, j)) + static_cast<double>(c.biases[j]));
    }
    std::ranges::sort(reduced, std::greater<>());
    for (std::size_t i = 0; i < c.top_k; ++i) dual += reduced[i];
  }
  for (const float b : c.biases) dual -= q * static_cast<double>(b);
  const auto indices = assign_optimally<float>(c.scores, {}, c.top_k);
  RC_ASSERT(is_balanced(loads_of(indices, c.experts())));
  RC_ASSERT(total(c.scores, indices) <= dual + 1e-9);
}

TEST(OptimalAssignment, BalancesALargerBatchExactly) {
  auto scores = test::random_matrix<float>(1024, 16, 3);
  for (std::size_t t = 0; t < 1024; ++t) scores(t, 0) += 2.0f;  // wanted by almost all
  const auto indices = assign_optimally<float>(scores, {}, 2);
  EXPECT_EQ(loads_of(indices, 16), std::vector<std::int64_t>(16, 128));
  EXPECT_EQ(indices, assign_optimally<float>(scores, {}, 2));
}

/// The largest gain of tokens that exchange experts in a cycle, all loads kept: 0 for an optimal assignment and no
/// other (Klein 1967). By Floyd and Warshall, in double; scores are multiples of 2^-12, so sums are exact.
double best_exchange(const Matrix<float>& scores, const Matrix<std::int32_t>& indices) {
  const std::size_t experts = scores.cols();
  Matrix<double> gain(experts, experts, -std::numeric_limits<double>::infinity());
  for (std::size_t t = 0; t < scores.rows(); ++t) {
    std::set<std::int32_t> own(indices.row(t).begin(), indices.row(t).end());
    for (const std::int32_t from : own) {
      const auto j = static_cast<std::size_t>(from);
      for (std::size_t l = 0; l < experts; ++l) {
        const double moved = static_cast<double>(scores(t, l)) - static_cast<double>(scores(t, j));
        if (!own.contains(static_cast<std::int32_t>(l))) gain(j, l) = std::max(gain(j, l), moved);
      }
    }
  }
  for (std::size_t v = 0; v < experts; ++v) {
    for (std::size_t j = 0; j < experts; ++j) {
      for (std::size_t l = 0; l < experts; ++l) gain(j, l) = std::max(gain(j, l), gain(j, v) + gain(v, l));
    }
  }
  double best = 0.0;
  for (std::size_t j = 0; j < experts; ++j) best = std::max(best, gain(j, j));
  return best;
}

TEST(OptimalAssignment, LeavesNoExchangeThatGainsAmongHundredsOfExperts) {
  for (const auto& [tokens, experts, top_k] : {std::tuple(400, 200, 8), std::tuple(300, 96, 1)}) {
    const auto m = static_cast<std::size_t>(tokens), e = static_cast<std::size_t>(experts);
    auto scores = test::random_matrix<float>(m, e, 9);
    const auto popularity = test::random_matrix<float>(1, e, 10);
    for (std::size_t t = 0; t < m; ++t) {
      for (std::size_t j = 0; j < e; ++j) {
        scores(t, j) = std::floor(4096.0f * (scores(t, j) + 2.0f * popularity(0, j))) / 4096.0f;
      }
    }
    const auto indices = assign_optimally<float>(scores, {}, static_cast<std::size_t>(top_k));
    EXPECT_TRUE(is_balanced(loads_of(indices, e)));
    EXPECT_EQ(best_exchange(scores, indices), 0.0);
    auto worse = indices;  // the oracle sees an exchange of two tokens
    std::size_t other = 1;
    while (std::ranges::any_of(indices.row(other), [&](auto j) { return j == indices(0, 0); }) ||
           std::ranges::any_of(indices.row(0), [&](auto j) { return j == indices(other, 0); })) {
      ++other;
    }
    std::swap(worse(0, 0), worse(other, 0));
    EXPECT_GT(best_exchange(scores, worse), 0.0);
  }
}

TEST(OptimalAssignment, BalancesEqualScores) {
  EXPECT_EQ(loads_of(assign_optimally<float>(Matrix<float>(12, 4, 0.5f), {}, 1), 4),
            std::vector<std::int64_t>(4, 3));
  EXPECT_EQ(loads_of(assign_optimally<float>(Matrix<float>(3, 4, 0.0f), {}, 4), 4),
            std::vector<std::int64_t>(4, 3));
}

TEST(OptimalAssignment, BalancesTheValidTokensAlone) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto scores = matrix({{.9f, .1f}, {nan, 0.0f}, {.8f, .2f}, {.9f, .0f}});
  const std::vector<std::uint8_t> valid{1, 0, 1, 0};
  const auto indices = assign_optimally<float>(scores, valid, 1);
  EXPECT_EQ(loads_of(indices, 2, valid), (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(indices(2, 0), 1);
  EXPECT_EQ(indices(3, 0), 0);
  EXPECT_THROW(assign_optimally<float>(scores, {}, 1), std::invalid_argument);
}

}  // namespace
}  // namespace ballast
