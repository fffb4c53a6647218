#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <vector>

#include "core/balancers/balancer.h"
#include "tests/core/support/selection.h"

/// Forwards that have given loads, for balancers that look at nothing else.
namespace ballast::oracle {

using Counts = std::vector<std::int64_t>;

/// One token with top-1 for every assignment, expert by expert; all valid.
inline RoutedTokens top_1_tokens(const Counts& loads) {
  std::vector<std::int32_t> chosen;
  for (std::size_t j = 0; j < loads.size(); ++j) {
    chosen.insert(chosen.end(), static_cast<std::size_t>(loads[j]), static_cast<std::int32_t>(j));
  }
  RoutedTokens routed;
  routed.indices = Matrix<std::int32_t>(chosen.size(), 1);
  std::copy(chosen.begin(), chosen.end(), routed.indices.values().begin());
  routed.scores = Matrix<float>(chosen.size(), loads.size());
  routed.valid.assign(chosen.size(), 1);
  return routed;
}

inline void observe(Balancer& balancer, const Counts& loads, std::size_t rank = 0) {
  auto routed = top_1_tokens(loads);
  routed.rank = rank;
  balancer.observe(routed.batch());
}

/// One step with one forward of these loads; returns the biases after it.
inline std::vector<float> step(Balancer& balancer, const Counts& loads) {
  observe(balancer, loads);
  balancer.end_step(true);
  return {balancer.biases().begin(), balancer.biases().end()};
}

/// Inside a RapidCheck property only: at least one assignment.
inline Counts drawn_loads(std::size_t experts) {
  auto loads = *rc::gen::container<Counts>(experts, rc::gen::inRange<std::int64_t>(0, 12));
  ++loads[*rc::gen::inRange<std::size_t>(0, experts)];
  return loads;
}

}  // namespace ballast::oracle
