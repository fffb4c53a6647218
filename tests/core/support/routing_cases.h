#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <vector>

#include "core/matrix.h"

namespace ballast::oracle {

/// A batch to route, drawn by RapidCheck.
struct RoutingCase {
  std::size_t top_k;
  Matrix<float> scores;  ///< in [0, 1], multiples of 2^-3 (many ties) or of 2^-12
  std::vector<float>
      biases;  ///< in [-1, 1], multiples of the same; sums with scores are exact in fp32
  std::size_t tokens() const { return scores.rows(); }
  std::size_t experts() const { return scores.cols(); }
};

inline std::vector<float> drawn_multiples(std::size_t count, int low, int high, float unit) {
  const auto numbers =
      *rc::gen::container<std::vector<int>>(count, rc::gen::inRange(low, high + 1));
  std::vector<float> values;
  for (const int n : numbers) values.push_back(static_cast<float>(n) * unit);
  return values;
}

/// Inside a RapidCheck property only.
inline RoutingCase drawn_routing_case(std::size_t tokens_max = 40, std::size_t experts_max = 8) {
  RoutingCase c;
  const auto tokens = *rc::gen::inRange<std::size_t>(1, tokens_max + 1);
  const auto experts = *rc::gen::inRange<std::size_t>(2, experts_max + 1);
  c.top_k = *rc::gen::inRange<std::size_t>(1, experts);
  const int per_unit = *rc::gen::element(8, 4096);
  const float unit = 1.0f / static_cast<float>(per_unit);
  c.scores = Matrix<float>(tokens, experts);
  const auto scores = drawn_multiples(tokens * experts, 0, per_unit, unit);
  std::copy(scores.begin(), scores.end(), c.scores.values().begin());
  c.biases = drawn_multiples(experts, -per_unit, per_unit, unit);
  return c;
}

}  // namespace ballast::oracle
