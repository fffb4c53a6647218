#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "core/balancers/balancer.h"
#include "core/matrix.h"

/// The plainest top-k there is, to hold others against.
namespace ballast::oracle {

/// All experts, best first: value descending, index ascending, signed zeros equal. No NaN.
template <class Real>
std::vector<std::int32_t> ranking(std::span<const Real> biased) {
  std::vector<std::int32_t> order(biased.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    const Real x = biased[static_cast<std::size_t>(a)];
    const Real y = biased[static_cast<std::size_t>(b)];
    return x > y || (x == y && a < b);
  });
  return order;
}

/// What a forward routed, owned.
struct RoutedTokens {
  Matrix<float> scores;
  std::vector<float> cutoffs;
  Matrix<std::int32_t> indices;
  std::vector<std::uint8_t> valid;
  std::size_t rank = 0;

  RoutedBatch batch() const { return {scores.view(), cutoffs, indices.view(), valid, rank}; }
};

/// Selects by s + b, one fp32 addition; needs top_k < experts. All rows are valid.
inline RoutedTokens route(Matrix<float> scores, std::span<const float> biases, std::size_t top_k) {
  RoutedTokens routed;
  routed.indices = Matrix<std::int32_t>(scores.rows(), top_k);
  for (std::size_t i = 0; i < scores.rows(); ++i) {
    std::vector<float> biased(scores.cols());
    for (std::size_t j = 0; j < biased.size(); ++j) biased[j] = scores(i, j) + biases[j];
    const auto order = ranking<float>(biased);
    std::copy_n(order.begin(), top_k, routed.indices.row(i).begin());
    routed.cutoffs.push_back(biased[static_cast<std::size_t>(order[top_k])]);
  }
  routed.valid.assign(scores.rows(), 1);
  routed.scores = std::move(scores);
  return routed;
}

/// Tokens that selected each expert.
inline std::vector<std::int64_t> loads(const RoutedTokens& routed) {
  std::vector<std::int64_t> counts(routed.scores.cols());
  for (std::size_t i = 0; i < routed.indices.rows(); ++i) {
    if (routed.valid[i] == 0) continue;
    for (const std::int32_t expert : routed.indices.row(i))
      ++counts[static_cast<std::size_t>(expert)];
  }
  return counts;
}

}  // namespace ballast::oracle
