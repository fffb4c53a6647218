#include "props/cases/shrink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "props/cases/generate.h"
#include "props/protocol/requests_json.h"
#include "tests/props/support/fakes.h"

#include <nlohmann/json.hpp>

namespace ballast::props {
namespace {

/// A case with something of everything.
Case large_case(std::uint64_t seed) {
  Stream stream(seed);
  return generate_case(stream, 60, Features{});
}

template <class Rows>
bool has_shape(const Rows& rows, const Open& open) {
  return rows.size() == open.model.layers && std::ranges::all_of(rows, [&](const auto& row) {
           return row.size() == open.model.routed_experts;
         });
}

bool is_valid(const Case& input) {
  const Open& open = input.open;
  const std::size_t experts = open.model.routed_experts;
  if (open.model.layers < 1 || open.ranks < 1 || open.model.top_k < 1 || open.model.top_k > experts) return false;
  if (open.balancer.kind == BalancerKind::quantile && open.model.top_k == experts) return false;
  if (open.biases && !has_shape(*open.biases, open)) return false;
  std::size_t saves = 0;
  for (const Request& request : input.history) {
    if (const auto* forward = std::get_if<Forward>(&request)) {
      if (forward->layer >= open.model.layers || forward->rank >= open.ranks) return false;
      if (forward->logits.cols() != experts) return false;
      if (!forward->mask.empty() && forward->mask.size() != forward->logits.rows()) return false;
    } else if (const auto* set = std::get_if<SetBiases>(&request)) {
      if (!has_shape(set->biases, open)) return false;
    } else if (std::holds_alternative<Save>(request)) {
      ++saves;
    } else if (const auto* load = std::get_if<Load>(&request)) {
      if (load->slot >= saves) return false;
    }
  }
  return true;
}

template <class Request_>
std::size_t count_of(const Case& input) {
  return static_cast<std::size_t>(std::ranges::count_if(
      input.history, [](const Request& request) { return std::holds_alternative<Request_>(request); }));
}

TEST(Shrink, EveryCandidateIsAValidConversation) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const Case input = large_case(seed);
    ASSERT_TRUE(is_valid(input));
    std::uint64_t tried = 0;
    shrink(input, [&](const Case& candidate) {
      EXPECT_TRUE(is_valid(candidate)) << case_json(candidate).dump();
      return ++tried % 3 == 0;  // so that it goes to many places
    });
    EXPECT_GT(tried, 10u);
  }
}

TEST(Shrink, AFailureOfOneValueIsOneTokenOneExpertAndThatValue) {
  Case input = large_case(3);
  Forward last{.layer = 0, .rank = 0, .mode = Mode::train,
               .logits = Matrix<float>(5, input.open.model.routed_experts, 0.3f), .mask = {}};
  last.logits(3, 0) = 77.7f;
  input.history.emplace_back(last);
  const Case smallest = shrink(input, [](const Case& c) { return test::largest_logit(c) >= 3.0f; });
  EXPECT_EQ(smallest.open.model.routed_experts, 1u);
  EXPECT_EQ(smallest.open.model.layers, 1u);
  EXPECT_EQ(smallest.open.ranks, 1u);
  EXPECT_EQ(smallest.open.balancer.kind, BalancerKind::none);
  EXPECT_EQ(smallest.open.biases, std::nullopt);
  ASSERT_EQ(smallest.history.size(), 1u);
  const auto& forward = std::get<Forward>(smallest.history[0]);
  ASSERT_EQ(forward.logits.rows(), 1u);
  EXPECT_EQ(forward.logits(0, 0), 3.0f);
  EXPECT_TRUE(forward.mask.empty());
  EXPECT_EQ(smallest.salt, 0u);
}

TEST(Shrink, ALoadKeepsItsSave) {
  const Case input = test::case_of({Save{}, Step{}, Save{}, Step{}, Load{1}, Load{0}, Step{}});
  const Case smallest = shrink(input, [](const Case& c) { return count_of<Load>(c) >= 1; });
  ASSERT_EQ(smallest.history.size(), 2u);
  EXPECT_EQ(std::get<Load>(smallest.history[1]).slot, 0u);
}

TEST(Shrink, LayersRanksAndExpertsThatMatterStay) {
  Case input;
  input.open.model = {.layers = 4, .routed_experts = 12, .top_k = 5};
  input.open.balancer.kind = BalancerKind::quantile;
  input.open.ranks = 5;
  for (std::size_t l = 0; l < 4; ++l) {
    input.history.emplace_back(Forward{.layer = l, .rank = l, .logits = Matrix<float>(6, 12, 0.7f), .mask = {}});
  }
  const Case smallest = shrink(input, [](const Case& c) {
    return c.open.model.layers >= 2 && c.open.model.top_k >= 2 && c.open.ranks >= 3 &&
           c.open.balancer.kind == BalancerKind::quantile;
  });
  EXPECT_EQ(smallest.open.model.layers, 2u);
  EXPECT_EQ(smallest.open.model.top_k, 2u);
  EXPECT_EQ(smallest.open.model.routed_experts, 3u) << "one more than top_k, for the cutoff";
  EXPECT_EQ(smallest.open.ranks, 3u);
  EXPECT_TRUE(smallest.history.empty());
}

TEST(Shrink, CountsAndChunksBecomeSmall) {
  const Case counts = test::case_of({MetricsOf{{{900, 17, 3}, {5, 5, 5}}}});
  const Case few = shrink(counts, [](const Case& c) {
    const auto* of = c.history.empty() ? nullptr : std::get_if<MetricsOf>(&c.history[0]);
    return of != nullptr && !of->counts.empty() && !of->counts[0].empty() && of->counts[0][0] >= 7;
  });
  EXPECT_EQ(std::get<MetricsOf>(few.history.at(0)).counts.size(), 1u);
  EXPECT_EQ(std::get<MetricsOf>(few.history.at(0)).counts.at(0).at(0), 7);

  const Case chunks = test::case_of({Combine{{{40, {{"a:sum", 3.7}, {"b:max", 9}}}, {2, {{"a:sum", 0.3}}}}}});
  const Case one = shrink(chunks, [](const Case& c) {
    return count_of<Combine>(c) == 1 && !std::get<Combine>(c.history[0]).chunks.empty() &&
           std::get<Combine>(c.history[0]).chunks[0].metrics.contains("a:sum");
  });
  const auto& left = std::get<Combine>(one.history.at(0)).chunks;
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].data, 0);
  EXPECT_EQ(left[0].metrics, (std::map<std::string, double>{{"a:sum", 0.0}}));
}

TEST(Shrink, IsDeterministicAndKeepsToItsAttempts) {
  const Case input = large_case(5);
  std::size_t tried = 0;
  const StillFails has_forward = [&](const Case& c) {
    ++tried;
    return count_of<Forward>(c) >= 2;
  };
  const Case first = shrink(input, has_forward, {.attempts = 25});
  EXPECT_LE(tried, 25u);
  EXPECT_EQ(case_json(first), case_json(shrink(input, has_forward, {.attempts = 25})));
}

TEST(IrrelevantParts, AreThoseWhoseValueCanBeAnother) {
  Case input;
  input.open.model = {.layers = 1, .routed_experts = 3, .top_k = 1, .score = ScoreFunction::logit};
  Forward forward{.logits = Matrix<float>(1, 3), .mask = {}};
  forward.logits(0, 1) = 2.0f;
  input.history = {forward};
  // Expert 1 has the largest logit, under any score function and scale; expert 2 is never looked at.
  const auto parts = irrelevant_parts(input, [](const Case& c) {
    const auto& z = std::get<Forward>(c.history[0]).logits;
    return z(0, 1) == 2.0f && z(0, 0) == 0.0f && c.open.model.renormalize;
  });
  EXPECT_EQ(parts, (std::set<std::string>{"/requests/0/model/routed_scale", "/requests/0/model/score",
                                          "/requests/1/logits/0/2"}));
}

TEST(Shrink, NarrowsGroupsOfExpertsAndDropsWholeOnes) {
  Case input;
  input.open.model = {.routed_experts = 12, .top_k = 3};
  input.open.model.groups = Groups{.n_group = 3, .topk_group = 2};
  Forward forward{.logits = Matrix<float>(1, 12), .mask = {}};
  forward.logits(0, 5) = 3.0f;  // group 1
  forward.logits(0, 10) = 2.0f;  // group 2
  input.history.emplace_back(std::move(forward));
  const Case smallest = shrink(input, [](const Case& candidate) {
    if (!candidate.open.model.groups || candidate.history.empty()) return false;
    const std::size_t size = candidate.open.model.routed_experts / candidate.open.model.groups->n_group;
    const auto& logits = std::get<Forward>(candidate.history[0]).logits;
    return size >= 2 && std::ranges::count(logits.values(), 3.0f) == 1 &&
           std::ranges::count(logits.values(), 2.0f) == 1;
  });
  EXPECT_EQ(smallest.open.model.groups->n_group, 2u);
  EXPECT_EQ(smallest.open.model.routed_experts, 4u);
}

}  // namespace
}  // namespace ballast::props
