// A program outside the project: a collapsed layer, balanced by one step of the exact quantile
// balancer.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <numeric>
#include <vector>

#include "core/balancers/quantile_balancer.h"
#include "core/matrix.h"
#include "core/metrics/load_metrics.h"
#include "core/state.h"

namespace {

constexpr std::size_t tokens = 64;
constexpr std::size_t experts = 4;

// Every token prefers expert 0, and has its own second choice.
ballast::Matrix<float> skewed_scores() {
  ballast::Matrix<float> scores(tokens, experts, 0.1F);
  for (std::size_t t = 0; t < tokens; ++t) {
    scores(t, 0) = 0.9F - 0.001F * static_cast<float>(t);
    scores(t, 1 + t % (experts - 1)) = 0.5F + 0.002F * static_cast<float>(t);
  }
  return scores;
}

struct Choices {
  ballast::Matrix<std::int32_t> indices{tokens, 1};
  std::vector<float> cutoffs = std::vector<float>(tokens);
  std::vector<std::int64_t> loads = std::vector<std::int64_t>(experts);
};

Choices choose(const ballast::Matrix<float>& scores, std::span<const float> biases) {
  Choices choices;
  for (std::size_t t = 0; t < tokens; ++t) {
    const auto biased = [&](std::size_t e) { return scores(t, e) + biases[e]; };
    std::vector<std::size_t> order(experts);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return biased(a) > biased(b); });
    choices.indices(t, 0) = static_cast<std::int32_t>(order[0]);
    choices.cutoffs[t] = biased(order[1]);
    ++choices.loads[order[0]];
  }
  return choices;
}

double max_violation(const Choices& choices) {
  return ballast::load_metrics(choices.loads)->max_violation;
}

}  // namespace

int main() {
  ballast::QuantileBalancer balancer(experts, 1,
                                     {.estimator = ballast::QuantileEstimatorKind::exact});
  const auto scores = skewed_scores();

  const auto before = choose(scores, balancer.biases());
  balancer.observe(
      {.scores = scores, .cutoffs = before.cutoffs, .indices = before.indices, .valid = {}});
  balancer.end_step(true);
  const auto after = choose(scores, balancer.biases());

  ballast::StateDict state;
  balancer.save(state, "router");
  const bool state_survives = ballast::StateDict::from_bytes(state.to_bytes()) == state;

  std::cout << "max violation " << max_violation(before) << " -> " << max_violation(after) << '\n';
  return max_violation(before) == experts - 1 && max_violation(after) < 1 && state_survives ? 0 : 1;
}
