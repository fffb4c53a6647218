#include "core/kernels/adamw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/kernels/kernels.h"
#include "core/random/distributions.h"
#include "core/random/stream.h"
#include "tests/core/support/bits.h"

namespace ballast {
namespace {

using kernels::Kernels;
using oracle::bits;

/// Every version this processor can run; the name of a test says which.
class AdamWOfEveryTarget : public testing::TestWithParam<const Kernels*> {};

struct State {
  std::vector<float> gradient, p, m, v;
};

/// Values of all sizes; now and then a gradient or a value is not finite, and moments are what they are at first.
State random_state(std::size_t count, Stream& stream) {
  State state;
  for (std::size_t i = 0; i < count; ++i) {
    const auto scale = static_cast<float>(std::ldexp(1.0, static_cast<int>(uniform(stream) * 40) - 20));
    const float g = uniform(stream) < 0.02   ? std::numeric_limits<float>::infinity()
                    : uniform(stream) < 0.02 ? -std::numeric_limits<float>::quiet_NaN()
                                             : static_cast<float>(normal(stream)) * scale;
    const bool first = uniform(stream) < 0.2;
    state.gradient.push_back(g);
    state.p.push_back(uniform(stream) < 0.02 ? -std::numeric_limits<float>::infinity()
                                             : static_cast<float>(normal(stream)));
    state.m.push_back(first ? 0.0f : static_cast<float>(normal(stream)) * scale);
    state.v.push_back(first ? 0.0f : static_cast<float>(uniform(stream)) * scale * scale);
  }
  return state;
}

/// The formulas of the header, value by value, with no number of NaN but the one.
State updated(const kernels::AdamWFactors& f, State s) {
  const auto one_nan = [](float x) { return x == x ? x : std::numeric_limits<float>::quiet_NaN(); };
  for (std::size_t i = 0; i < s.p.size(); ++i) {
    const float g = s.gradient[i] / f.scale;
    const float kept_m = f.beta1 * s.m[i], new_m = f.keep1 * g;
    const float kept_v = f.beta2 * s.v[i], square = g * g, new_v = f.keep2 * square;
    const float m = kept_m + new_m, v = kept_v + new_v;
    const float corrected = m * f.correct1, root = std::sqrt(v * f.correct2);
    const float direction = corrected / (root + f.eps), decay = f.decay * s.p[i];
    const float change = f.rate * (direction + decay);
    s.m[i] = one_nan(m);
    s.v[i] = one_nan(v);
    s.p[i] = one_nan(s.p[i] - change);
  }
  return s;
}

kernels::AdamWFactors factors_with(float scale, bool exact_inverse, float decay) {
  return {scale, 0.9f, 0.999f, 0.1f, 0.001f, 1.7f, 30.0f, 0.01f, 1e-8f, decay, exact_inverse};
}

TEST_P(AdamWOfEveryTarget, GivesEachValueWhatTheFormulaSays) {
  Stream stream(1);
  for (const std::size_t count : {0u, 1u, 7u, 8u, 15u, 16u, 17u, 33u, 1000u}) {
    for (const auto& factors : {factors_with(3.0f, false, 0.0f), factors_with(8.0f, false, 0.1f),
                                factors_with(8.0f, true, 0.1f), factors_with(0.0625f, true, 0.0f)}) {
      const State before = random_state(count, stream), right = updated(factors, before);
      State after = before;
      for (auto* const values : {&after.p, &after.m, &after.v}) values->push_back(7.0f);
      GetParam()->adamw(factors, {after.gradient.data(), after.p.data(), after.m.data(), after.v.data(), count});
      for (auto* const values : {&after.p, &after.m, &after.v}) {
        EXPECT_EQ(values->back(), 7.0f);
        values->pop_back();
      }
      ASSERT_EQ(bits(after.p), bits(right.p)) << count << " values, scale " << factors.scale;
      ASSERT_EQ(bits(after.m), bits(right.m)) << count << " values, scale " << factors.scale;
      ASSERT_EQ(bits(after.v), bits(right.v)) << count << " values, scale " << factors.scale;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, AdamWOfEveryTarget,
                         testing::ValuesIn(kernels::available().begin(), kernels::available().end()),
                         [](const auto& version) { return std::string(name(version.param->target)); });

}  // namespace
}  // namespace ballast
