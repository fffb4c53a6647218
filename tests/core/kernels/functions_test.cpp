#include "core/kernels/functions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/arithmetic/functions.h"
#include "core/kernels/kernels.h"
#include "tests/core/support/bits.h"

namespace ballast {
namespace {

using kernels::Kernels;
using oracle::bits;
using OfArray = void (*)(const float* in, float* out, std::size_t count);
using OfOne = float (*)(float x);

/// Every version this processor can run, the reference among them; the name of a test says which.
class FunctionsOfEveryTarget : public testing::TestWithParam<const Kernels*> {};

std::string target_name(const testing::TestParamInfo<const Kernels*>& info) {
  return std::string(name(info.param->target));
}

/// Floats by their bits: every `step`-th pattern.
std::vector<float> patterns(std::uint64_t first, std::uint64_t last, std::uint32_t step) {
  std::vector<float> x;
  for (std::uint64_t u = first; u < last; u += step)
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(u)));
  return x;
}

std::vector<float> one_by_one(OfOne function, const std::vector<float>& x) {
  std::vector<float> y;
  for (const float value : x) y.push_back(function(value));
  return y;
}

/// A prime step visits every exponent and both signs, also among NaNs and subnormal numbers.
void expect_as_arithmetic(OfArray subject, OfOne function) {
  constexpr std::uint32_t step = 15013;
  const auto x = patterns(0, std::uint64_t{1} << 32, step);
  const auto right = one_by_one(function, x);
  std::vector<float> given(x.size());
  subject(x.data(), given.data(), x.size());
  EXPECT_TRUE(bits(given) == bits(right));
  // Neighbours of any kind change nothing: the same in other company, and in a row of any length.
  for (std::size_t length : {1, 3, 8, 15, 16, 17, 31, 63, 64, 65, 129}) {
    std::vector<float> row(x.begin() + 7000, x.begin() + 7000 + static_cast<std::ptrdiff_t>(length) + 1);
    const float behind = row.back();
    subject(row.data(), row.data(), length);
    EXPECT_TRUE(std::memcmp(row.data(), right.data() + 7000, length * sizeof(float)) == 0) << length;
    EXPECT_EQ(std::bit_cast<std::uint32_t>(row.back()), std::bit_cast<std::uint32_t>(behind));
  }
}

TEST_P(FunctionsOfEveryTarget, TakeTheSigmoidAsArithmeticDoes) {
  expect_as_arithmetic(GetParam()->sigmoid, arithmetic::sigmoid);
}
TEST_P(FunctionsOfEveryTarget, TakeTheExponentialAsArithmeticDoes) {
  expect_as_arithmetic(GetParam()->functions.exp, arithmetic::exp);
}
TEST_P(FunctionsOfEveryTarget, TakeTheTangentAsArithmeticDoes) {
  expect_as_arithmetic(GetParam()->functions.tanh, arithmetic::tanh);
}

TEST_P(FunctionsOfEveryTarget, DISABLED_TakeEveryFloatAsArithmeticDoes) {
  constexpr std::uint64_t at_once = 1 << 16;
  const Kernels& subject = *GetParam();
  std::vector<float> x(at_once), right(at_once), given(at_once);
  const auto differ = [&](OfArray array, OfOne one) {
    std::transform(x.begin(), x.end(), right.begin(), one);
    array(x.data(), given.data(), at_once);
    return std::memcmp(given.data(), right.data(), at_once * sizeof(float)) != 0;
  };
  for (std::uint64_t first = 0; first < std::uint64_t{1} << 32; first += at_once) {
    for (std::uint64_t i = 0; i < at_once; ++i)
      x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(first + i));
    ASSERT_FALSE(differ(subject.sigmoid, arithmetic::sigmoid)) << first;
    ASSERT_FALSE(differ(subject.functions.exp, arithmetic::exp)) << first;
    ASSERT_FALSE(differ(subject.functions.tanh, arithmetic::tanh)) << first;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, FunctionsOfEveryTarget,
                         testing::ValuesIn(kernels::available().begin(), kernels::available().end()),
                         target_name);

}  // namespace
}  // namespace ballast
