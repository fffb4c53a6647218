#include "core/arithmetic/reductions.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

#include "core/arithmetic/functions.h"
#include "core/random/distributions.h"
#include "core/random/stream.h"

namespace ballast::arithmetic {
namespace {

template <class Real>
auto bits(Real x) {
  return std::bit_cast<std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>>(x);
}

template <class Real>
constexpr Real infinity = std::numeric_limits<Real>::infinity();
template <class Real>
constexpr Real nan_value = std::numeric_limits<Real>::quiet_NaN();

template <class Real>
std::vector<Real> random_values(std::size_t count, std::uint64_t seed = 1) {
  Stream stream(seed);
  std::vector<Real> values(count);
  for (Real& value : values) value = static_cast<Real>(3 * normal(stream));
  return values;
}

template <class Real>
std::span<const Real> view(const std::vector<Real>& values) {
  return values;
}

/// The definition of `sum`, word by word.
template <class Sum, class Real>
Sum defined_sum(const std::vector<Real>& values) {
  std::vector<Sum> block_sums;
  for (std::size_t first = 0; first < values.size(); first += 256) {
    std::vector<Sum> lane(16, Sum(0));
    for (std::size_t i = first; i < std::min(first + 256, values.size()); ++i) {
      lane[(i - first) % 16] += static_cast<Sum>(values[i]);
    }
    for (std::size_t l = 0; l < 8; ++l) lane[l] += lane[l + 8];
    for (std::size_t l = 0; l < 4; ++l) lane[l] += lane[l + 4];
    block_sums.push_back((lane[0] + lane[2]) + (lane[1] + lane[3]));
  }
  if (block_sums.empty()) return 0;
  return std::accumulate(block_sums.begin() + 1, block_sums.end(), block_sums[0]);
}

const std::vector<std::size_t> sizes = {0,   1,   2,   15,  16,  17,  31,   100, 255,
                                        256, 257, 511, 512, 513, 700, 1000, 2563};

template <class Real>
class Reductions : public ::testing::Test {};
using Formats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Reductions, Formats);

TYPED_TEST(Reductions, SumInTheDefinedOrder) {
  for (const std::size_t size : sizes) {
    const auto values = random_values<TypeParam>(size);
    EXPECT_EQ(bits(sum(view(values))), bits(defined_sum<TypeParam>(values))) << size;
  }
}

TEST(SumInDouble, WidensEveryTermFirst) {
  for (const std::size_t size : sizes) {
    const auto values = random_values<float>(size);
    EXPECT_EQ(sum_in_double(values), defined_sum<double>(values)) << size;
  }
  EXPECT_EQ(sum_in_double(std::vector<float>{16777216.0f, 1.0f}), 16777217.0);
}

TYPED_TEST(Reductions, AddPositiveZerosForNothing) {
  EXPECT_EQ(bits(sum(std::span<const TypeParam>())), bits(TypeParam(0)));
  EXPECT_EQ(bits(dot(std::span<const TypeParam>(), {})), bits(TypeParam(0)));
  EXPECT_EQ(bits(sum(view(std::vector<TypeParam>(300, TypeParam(-0.0))))), bits(TypeParam(0)));
}

TYPED_TEST(Reductions, GiveOneQuietNaN) {
  using Real = TypeParam;
  const auto quiet = bits(nan_value<Real>);
  EXPECT_EQ(bits(sum(view(std::vector<Real>{1, -nan_value<Real>}))), quiet);
  EXPECT_EQ(bits(sum(view(std::vector<Real>{infinity<Real>, -infinity<Real>}))), quiet);
  EXPECT_EQ(bits(dot(view(std::vector<Real>{infinity<Real>}), view(std::vector<Real>{0}))), quiet);
  EXPECT_EQ(sum(view(std::vector<Real>{1, infinity<Real>})), infinity<Real>);
}

TYPED_TEST(Reductions, TakeDotProductsInChainsOfABlock) {
  for (const std::size_t size : sizes) {
    const auto a = random_values<TypeParam>(size, 1);
    const auto b = random_values<TypeParam>(size, 2);
    TypeParam total = 0;
    for (std::size_t first = 0; first < size; first += 256) {
      TypeParam chain = 0;
      for (std::size_t i = first; i < std::min(first + 256, size); ++i) {
        chain = std::fma(a[i], b[i], chain);
      }
      total = first == 0 ? chain : total + chain;
    }
    EXPECT_EQ(bits(dot(view(a), view(b))), bits(total)) << size;
  }
}

/// The bounds of the header against sums in long double, on values that cancel.
TYPED_TEST(Reductions, KeepTheirErrorBounds) {
  const long double unit = std::numeric_limits<TypeParam>::epsilon() / 2;
  for (const std::size_t size : sizes) {
    const auto a = random_values<TypeParam>(size, 3);
    const auto b = random_values<TypeParam>(size, 4);
    long double exact_sum = 0, sum_size = 0, exact_dot = 0, dot_size = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const auto product = static_cast<long double>(a[i]) * b[i];
      exact_sum += a[i], sum_size += std::abs(a[i]);
      exact_dot += product, dot_size += std::abs(product);
    }
    const auto blocks = static_cast<long double>(size) / 256;
    EXPECT_LE(std::abs(sum(view(a)) - exact_sum), (20 + blocks) * unit * sum_size) << size;
    EXPECT_LE(std::abs(dot(view(a), view(b)) - exact_dot), (256 + blocks) * unit * dot_size)
        << size;
  }
}

TYPED_TEST(Reductions, LogSumExpIsAccurateAndDoesNotOverflow) {
  using Real = TypeParam;
  const Real tolerance = 8 * std::numeric_limits<Real>::epsilon();
  for (const std::size_t size : sizes) {
    if (size == 0) continue;
    const auto x = random_values<Real>(size);
    long double total = 0;
    for (const Real value : x) total += std::exp(static_cast<long double>(value));
    const long double exact = std::log(total);
    EXPECT_LE(std::abs(log_sum_exp(view(x)) - exact), tolerance * (1 + std::abs(exact))) << size;
  }
  const Real huge = std::numeric_limits<Real>::max() / 2;
  EXPECT_EQ(log_sum_exp(view(std::vector<Real>{huge, -huge})), huge);
  EXPECT_EQ(log_sum_exp(view(std::vector<Real>{-huge, -huge})), -huge);
  EXPECT_EQ(log_sum_exp(view(std::vector<Real>{Real(1.25)})), Real(1.25));
}

TYPED_TEST(Reductions, LogSumExpHasItsLimits) {
  using Real = TypeParam;
  const Real inf = infinity<Real>, nan = nan_value<Real>;
  EXPECT_EQ(log_sum_exp(std::span<const Real>()), -inf);
  EXPECT_EQ(log_sum_exp(view(std::vector<Real>{-inf, -inf})), -inf);
  EXPECT_EQ(log_sum_exp(view(std::vector<Real>{-inf, 2, -inf})), Real(2));
  EXPECT_EQ(log_sum_exp(view(std::vector<Real>{1, inf, -inf})), inf);
  EXPECT_EQ(bits(log_sum_exp(view(std::vector<Real>{inf, -nan}))), bits(nan));
  EXPECT_EQ(bits(log_sum_exp(view(std::vector<Real>{nan, 1}))), bits(nan));
  EXPECT_EQ(bits(log_sum_exp(view(std::vector<Real>{-inf, nan}))), bits(nan));
}

TYPED_TEST(Reductions, SoftmaxIsTheQuotientItIsDefinedAs) {
  using Real = TypeParam;
  for (const std::size_t size : sizes) {
    auto x = random_values<Real>(size);
    std::vector<Real> terms(size), out(size);
    Real max = -infinity<Real>;
    for (const Real value : x) max = std::max(max, value);
    for (std::size_t i = 0; i < size; ++i) terms[i] = exp(x[i] - max);
    const Real total = sum(view(terms));
    softmax(view(x), out);
    softmax(view(x), x);
    for (std::size_t i = 0; i < size; ++i) {
      ASSERT_EQ(bits(out[i]), bits(terms[i] / total));
      ASSERT_EQ(bits(x[i]), bits(out[i])) << "in place";
    }
  }
}

template <class Real>
std::vector<Real> softmax_of(std::vector<Real> x) {
  softmax(view(x), x);
  return x;
}

TYPED_TEST(Reductions, SoftmaxHasItsLimits) {
  using Real = TypeParam;
  const Real inf = infinity<Real>, nan = nan_value<Real>;
  EXPECT_EQ(softmax_of<Real>({-inf, 3, -inf}), (std::vector<Real>{0, 1, 0}));
  EXPECT_EQ(softmax_of<Real>({5, 5}), (std::vector<Real>{0.5, 0.5}));
  EXPECT_EQ(
      softmax_of<Real>({std::numeric_limits<Real>::max(), std::numeric_limits<Real>::lowest()}),
      (std::vector<Real>{1, 0}));
  for (const auto& row : {std::vector<Real>{nan, 1}, std::vector<Real>{1, -nan, -inf},
                          std::vector<Real>{inf, 1}, std::vector<Real>{-inf, -inf}}) {
    for (const Real value : softmax_of(row)) EXPECT_EQ(bits(value), bits(nan));
  }
}

TYPED_TEST(Reductions, SoftmaxDoesNotChangeUnderAnExactShift) {
  const std::vector<TypeParam> x = {1, -2, 3.5, 0}, shifted = {9, 6, 11.5, 8};
  EXPECT_EQ(softmax_of(x), softmax_of(shifted));
}

}  // namespace
}  // namespace ballast::arithmetic
