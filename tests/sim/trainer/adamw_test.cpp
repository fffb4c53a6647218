#include "sim/trainer/adamw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/random/distributions.h"
#include "sim/threads/thread_pool.h"

namespace ballast::sim {
namespace {

constexpr OptimizerSettings settings{
    .learning_rate = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1};

/// Parameters that fill several pieces of the executor's, small ones among them, under drawn
/// gradients.
struct Problem {
  Problem() {
    Stream stream(3);
    for (const std::size_t size : {5u, 20000u, 1u, 9000u, 9000u, 30u}) {
      auto& parameter = *parameters.emplace_back(std::make_unique<Parameter<float>>(1, size));
      for (float& p : parameter.value.values()) p = static_cast<float>(normal(stream));
      named.emplace_back("p" + std::to_string(parameters.size()), &parameter);
    }
  }
  void draw_gradients(std::size_t step) {
    Stream stream = Stream(7).child(step);
    for (auto& parameter : parameters) {
      for (float& g : parameter->gradient.values()) g = static_cast<float>(3.0 * normal(stream));
    }
  }
  std::vector<std::unique_ptr<Parameter<float>>> parameters;
  AdamW::Parameters named;
};

TEST(AdamW, FollowsAlgorithm2InDouble) {
  constexpr double divisor = 4.0;
  Problem problem;
  AdamW adamw(problem.named, settings);
  std::vector<std::vector<double>> p, m, v;
  for (const auto& parameter : problem.parameters) {
    const auto values = parameter->value.values();
    p.emplace_back(values.begin(), values.end());
    m.emplace_back(values.size());
    v.emplace_back(values.size());
  }
  for (std::size_t t = 1; t <= 5; ++t) {
    problem.draw_gradients(t);
    adamw.step(divisor, serial_executor());
    for (std::size_t n = 0; n < p.size(); ++n) {
      for (std::size_t i = 0; i < p[n].size(); ++i) {
        const double g = double{problem.parameters[n]->gradient.values()[i]} / divisor;
        m[n][i] = settings.beta1 * m[n][i] + (1.0 - settings.beta1) * g;
        v[n][i] = settings.beta2 * v[n][i] + (1.0 - settings.beta2) * g * g;
        const double mean = m[n][i] / (1.0 - std::pow(settings.beta1, t));
        const double square = v[n][i] / (1.0 - std::pow(settings.beta2, t));
        p[n][i] -= settings.learning_rate *
                   (mean / (std::sqrt(square) + settings.eps) + settings.weight_decay * p[n][i]);
        ASSERT_NEAR(problem.parameters[n]->value.values()[i], p[n][i], 2e-6) << n << " " << i;
      }
    }
  }
}

TEST(AdamW, IsTheSameOnAnyNumberOfThreads) {
  Problem one, four;
  AdamW alone(one.named, settings), together(four.named, settings);
  const ThreadPool pool(4);
  for (std::size_t t = 1; t <= 3; ++t) {
    one.draw_gradients(t);
    four.draw_gradients(t);
    alone.step(2.0, serial_executor());
    together.step(2.0, pool);
  }
  for (std::size_t n = 0; n < one.parameters.size(); ++n)
    EXPECT_EQ(one.parameters[n]->value, four.parameters[n]->value);
}

TEST(AdamW, SumsTheSquaresOfEachGradientInOrder) {
  Problem problem;
  const AdamW adamw(problem.named, settings);
  problem.draw_gradients(3);
  const auto squares = adamw.squared_gradients(serial_executor());
  ASSERT_EQ(squares.size(), problem.parameters.size());
  for (std::size_t n = 0; n < squares.size(); ++n) {
    double sum = 0.0;
    for (const float g : problem.parameters[n]->gradient.values()) sum += double{g} * double{g};
    EXPECT_EQ(squares[n], sum);
  }
}

bool all_finite(const std::vector<double>& values) {
  return std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
}

TEST(AdamW, SeesOneGradientThatIsNotFinite) {
  using Limits = std::numeric_limits<float>;
  for (const float bad : {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()}) {
    Problem problem;
    const AdamW adamw(problem.named, settings);
    problem.draw_gradients(1);
    problem.parameters[0]->gradient.values()[0] = Limits::max();
    problem.parameters[1]->gradient.values()[0] = -Limits::denorm_min();
    EXPECT_TRUE(all_finite(adamw.squared_gradients(serial_executor())));
    problem.parameters[4]->gradient.values()[8999] = bad;
    EXPECT_FALSE(all_finite(adamw.squared_gradients(serial_executor())));
  }
}

}  // namespace
}  // namespace ballast::sim
