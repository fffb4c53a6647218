#include "core/arithmetic/products.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "core/arithmetic/reductions.h"
#include "core/kernels/kernels.h"
#include "core/random/distributions.h"
#include "core/random/stream.h"

namespace ballast::arithmetic {
namespace {

/// Runs every second piece on another thread, backwards.
class TwoThreads : public Executor {
 public:
  void for_each(std::size_t count, const std::function<void(std::size_t)>& task) const override {
    std::thread other([&] {
      for (std::size_t i = 1; i < count; i += 2) task(i);
    });
    for (std::size_t i = (count + 1) / 2; i-- > 0;) task(2 * i);
    other.join();
  }
};

template <class Real>
Matrix<Real> random_matrix(std::size_t rows, std::size_t cols, Stream& stream) {
  Matrix<Real> matrix(rows, cols);
  for (Real& value : matrix.values()) value = static_cast<Real>(normal(stream));
  return matrix;
}

template <class Real>
Matrix<Real> transpose(const Matrix<Real>& matrix) {
  Matrix<Real> out(matrix.cols(), matrix.rows());
  for (std::size_t i = 0; i < matrix.rows(); ++i) {
    for (std::size_t j = 0; j < matrix.cols(); ++j) out(j, i) = matrix(i, j);
  }
  return out;
}

template <class Real>
Matrix<Real> rows(const Matrix<Real>& matrix, std::size_t first, std::size_t count) {
  Matrix<Real> out(count, matrix.cols());
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < matrix.cols(); ++j) out(i, j) = matrix(first + i, j);
  }
  return out;
}

/// Equal to the bit, NaNs and signed zeros included.
template <class Real>
bool same_bits(const Matrix<Real>& a, const Matrix<Real>& b) {
  using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  if (a.rows() != b.rows() || a.cols() != b.cols()) return false;
  for (std::size_t i = 0; i < a.rows() * a.cols(); ++i) {
    if (std::bit_cast<Bits>(a.values()[i]) != std::bit_cast<Bits>(b.values()[i])) return false;
  }
  return true;
}

template <class Real>
Matrix<Real> times_transposed(const Matrix<Real>& a, const Matrix<Real>& b,
                              const Executor& executor = serial_executor()) {
  Matrix<Real> out(a.rows(), b.rows(), Real(-7));  // what is there before must not matter
  multiply_transposed<Real>(a, b, out, executor);
  return out;
}

template <class Real>
Matrix<Real> times(const Matrix<Real>& a, const Matrix<Real>& b,
                   const Executor& executor = serial_executor()) {
  Matrix<Real> out(a.rows(), b.cols(), Real(-7));
  multiply<Real>(a, b, out, executor);
  return out;
}

template <class Real>
Matrix<Real> accumulated(Matrix<Real> out, const Matrix<Real>& a, const Matrix<Real>& b,
                         const Executor& executor = serial_executor()) {
  accumulate_transposed<Real>(a, b, out, executor);
  return out;
}

/// The definitions, entry by entry.
template <class Real>
Matrix<Real> naive_times_transposed(const Matrix<Real>& a, const Matrix<Real>& b) {
  Matrix<Real> out(a.rows(), b.rows());
  for (std::size_t i = 0; i < a.rows(); ++i) {
    for (std::size_t j = 0; j < b.rows(); ++j) out(i, j) = dot(a.row(i), b.row(j));
  }
  return out;
}

template <class Real>
Matrix<Real> naive_accumulated(Matrix<Real> out, const Matrix<Real>& a, const Matrix<Real>& b) {
  for (std::size_t i = 0; i < out.rows(); ++i) {
    for (std::size_t j = 0; j < out.cols(); ++j) {
      for (std::size_t t = 0; t < a.rows(); ++t) out(i, j) = std::fma(a(t, i), b(t, j), out(i, j));
    }
  }
  return out;
}

struct Shape {
  std::size_t m, n, p;
};

// Around the tiles, the blocks of 256, and the pieces that go to threads; with empty ones.
const std::vector<Shape> shapes = {
    {0, 3, 4},    {3, 0, 4},       {3, 4, 0},      {1, 1, 1},       {1, 64, 32},  {2, 5, 3},
    {6, 32, 16},  {7, 33, 17},     {13, 31, 255},  {5, 16, 256},    {5, 17, 257}, {64, 64, 32},
    {3, 70, 600}, {200, 67, 40},   {193, 65, 300}, {389, 130, 513}, {29, 8, 300}, {30, 9, 70},
    {17, 48, 33}, {850, 1030, 20}, {1, 5, 600},    {19, 8, 9000},   {9, 3, 4352}, {9, 5, 4352},
    {16, 8, 16},  {33, 7, 300},    {47, 2, 4353},  {850, 4, 79},    {31, 1, 513}};

/// A format on a version of the kernels.
template <class Real_, kernels::Target target_>
struct On {
  using Real = Real_;
  static constexpr kernels::Target target = target_;
};

template <class Case>
class Products : public ::testing::Test {
 protected:
  void SetUp() override {
    kernels::limit_target(Case::target);
    if (kernels::active().target != Case::target) GTEST_SKIP() << "this processor has it not";
  }
  void TearDown() override { kernels::limit_target(kernels::Target::avx512); }
};

struct Names {
  template <class Case>
  static std::string GetName(int) {
    return std::string(sizeof(typename Case::Real) == 4 ? "float_" : "double_") +
           std::string(kernels::name(Case::target));
  }
};
using kernels::Target;
using Cases =
    ::testing::Types<On<float, Target::scalar>, On<double, Target::scalar>, On<float, Target::neon>,
                     On<double, Target::neon>, On<float, Target::avx2>, On<double, Target::avx2>,
                     On<float, Target::avx512>, On<double, Target::avx512>>;
TYPED_TEST_SUITE(Products, Cases, Names);

TYPED_TEST(Products, HaveTheDotProductsOfTheirRowsAndColumns) {
  for (const auto [m, n, p] : shapes) {
    Stream stream(m * 1000 + n);
    const auto a = random_matrix<typename TypeParam::Real>(m, p, stream);
    const auto b = random_matrix<typename TypeParam::Real>(n, p, stream);
    const auto expected = naive_times_transposed(a, b);
    EXPECT_TRUE(same_bits(times_transposed(a, b), expected)) << m << " " << n << " " << p;
    EXPECT_TRUE(same_bits(times(a, transpose(b)), expected)) << m << " " << n << " " << p;
  }
}

TYPED_TEST(Products, AccumulateOneChainAnEntry) {
  for (const auto [m, n, p] : shapes) {
    Stream stream(m * 1000 + n);
    const auto a = random_matrix<typename TypeParam::Real>(p, m, stream);
    const auto b = random_matrix<typename TypeParam::Real>(p, n, stream);
    const auto out = random_matrix<typename TypeParam::Real>(m, n, stream);
    EXPECT_TRUE(same_bits(accumulated(out, a, b), naive_accumulated(out, a, b)))
        << m << " " << n << " " << p;
  }
}

TYPED_TEST(Products, AreTheSameOnTwoThreads) {
  const TwoThreads threads;
  for (const auto [m, n, p] : shapes) {
    Stream stream(m * 1000 + n);
    const auto a = random_matrix<typename TypeParam::Real>(m, p, stream);
    const auto b = random_matrix<typename TypeParam::Real>(n, p, stream);
    const auto out = random_matrix<typename TypeParam::Real>(m, n, stream);
    EXPECT_TRUE(same_bits(times_transposed(a, b, threads), times_transposed(a, b)));
    EXPECT_TRUE(same_bits(times(a, transpose(b), threads), times(a, transpose(b))));
    EXPECT_TRUE(same_bits(accumulated(out, transpose(a), transpose(b), threads),
                          accumulated(out, transpose(a), transpose(b))));
  }
}

/// |error| of a chain of n operations is at most about n u sum |a_i b_i|; chains here have 256 +
/// blocks terms.
TYPED_TEST(Products, AreCloseToTheExactOnes) {
  using Real = typename TypeParam::Real;
  const double unit = std::numeric_limits<Real>::epsilon() / 2;
  for (const auto [m, n, p] : shapes) {
    Stream stream(m * 1000 + n);
    const auto a = random_matrix<Real>(m, p, stream);
    const auto b = random_matrix<Real>(n, p, stream);
    const auto product = times_transposed(a, b);
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        long double exact = 0, size = 0;
        for (std::size_t k = 0; k < p; ++k) {
          const long double term = static_cast<long double>(a(i, k)) * b(j, k);
          exact += term;
          size += std::abs(term);
        }
        const auto chain = static_cast<long double>(std::min<std::size_t>(p, 256) + p / 256);
        ASSERT_LE(std::abs(product(i, j) - exact), chain * unit * size * 1.01L);
      }
    }
  }
}

TYPED_TEST(Products, OfARowDoNotDependOnTheOtherRows) {
  Stream stream(5);
  const auto a = random_matrix<typename TypeParam::Real>(203, 270, stream);
  const auto b = random_matrix<typename TypeParam::Real>(37, 270, stream);
  const auto whole = times_transposed(a, b);
  for (const std::size_t count : {1u, 2u, 5u, 6u, 7u, 64u, 199u}) {
    for (const std::size_t first : {0u, 1u, 4u}) {
      EXPECT_TRUE(same_bits(times_transposed(rows(a, first, count), b), rows(whole, first, count)));
      EXPECT_TRUE(same_bits(times(rows(a, first, count), transpose(b)), rows(whole, first, count)));
    }
  }
}

TYPED_TEST(Products, AccumulatedInTwoPartsAreThoseOfTheWhole) {
  Stream stream(6);
  constexpr std::size_t tokens = 270;
  const auto a = random_matrix<typename TypeParam::Real>(tokens, 7, stream);
  const auto b = random_matrix<typename TypeParam::Real>(tokens, 35, stream);
  const auto start = random_matrix<typename TypeParam::Real>(7, 35, stream);
  const auto whole = accumulated(start, a, b);
  for (std::size_t split = 0; split <= tokens; ++split) {
    const auto first = accumulated(start, rows(a, 0, split), rows(b, 0, split));
    const auto both =
        accumulated(first, rows(a, split, tokens - split), rows(b, split, tokens - split));
    ASSERT_TRUE(same_bits(both, whole)) << split;
  }
}

TYPED_TEST(Products, PassOnNaNAndInfinityToTheEntriesTheyReachOnly) {
  using Real = typename TypeParam::Real;
  constexpr Real inf = std::numeric_limits<Real>::infinity();
  Stream stream(7);
  auto a = random_matrix<Real>(9, 20, stream);
  auto b = random_matrix<Real>(40, 20, stream);
  a(1, 3) = -std::numeric_limits<Real>::quiet_NaN();
  a(2, 4) = inf;
  b(5, 4) = 0;
  const auto product = times_transposed(a, b);
  EXPECT_TRUE(same_bits(product, naive_times_transposed(a, b)));
  for (std::size_t j = 0; j < 40; ++j) {
    EXPECT_TRUE(std::isnan(product(1, j)));
    EXPECT_EQ(std::isinf(product(2, j)), j != 5);
    EXPECT_TRUE(std::isfinite(product(0, j)));
  }
  EXPECT_TRUE(std::isnan(product(2, 5)));
  EXPECT_FALSE(std::signbit(product(1, 0))) << "NaNs leave with one set of bits";
  EXPECT_FALSE(std::signbit(product(2, 5))) << "NaNs leave with one set of bits";
}

RC_GTEST_PROP(ProductsProperties, EveryShapeKeepsTheDefinition, ()) {
  const auto m = *rc::gen::inRange<std::size_t>(0, 40);
  const auto n = *rc::gen::inRange<std::size_t>(0, 80);
  const auto p = *rc::gen::inRange<std::size_t>(0, 600);
  Stream stream(*rc::gen::arbitrary<std::uint64_t>());
  const auto a = random_matrix<float>(m, p, stream);
  const auto b = random_matrix<float>(n, p, stream);
  const auto out = random_matrix<float>(m, n, stream);
  const auto expected = naive_times_transposed(a, b);
  RC_ASSERT(same_bits(times_transposed(a, b), expected));
  RC_ASSERT(same_bits(times(a, transpose(b)), expected));
  RC_ASSERT(same_bits(accumulated(out, transpose(a), transpose(b)),
                      naive_accumulated(out, transpose(a), transpose(b))));
}

}  // namespace
}  // namespace ballast::arithmetic
