#include "core/kernels/reductions.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "core/arithmetic/reductions.h"
#include "core/kernels/kernels.h"
#include "core/random/distributions.h"
#include "core/random/stream.h"
#include "tests/core/support/bits.h"

namespace ballast {
namespace {

using kernels::Kernels;
using oracle::bits;
using Rows = std::vector<std::vector<float>>;

/// Every version this processor can run; the name of a test says which.
class ReductionsOfEveryTarget : public testing::TestWithParam<const Kernels*> {};

/// Of every size, now and then with a value that is not finite.
Rows random_rows(std::size_t count, std::size_t length, Stream& stream) {
  Rows rows(count, std::vector<float>(length));
  for (auto& row : rows) {
    for (float& value : row) value = static_cast<float>(normal(stream) * 1e3);
    if (length > 0 && uniform(stream) < 0.1)
      row[length / 2] = std::numeric_limits<float>::infinity() * (uniform(stream) < 0.5 ? 1.0f : -1.0f);
    if (length > 0 && uniform(stream) < 0.1) row[length - 1] = -std::numeric_limits<float>::quiet_NaN();
  }
  return rows;
}

std::vector<const float*> starts(const Rows& rows) {
  std::vector<const float*> starts;
  for (const auto& row : rows) starts.push_back(row.data());
  return starts;
}

TEST_P(ReductionsOfEveryTarget, GiveEachRowWhatItHasAlone) {
  Stream stream(1);
  for (const std::size_t count : {0u, 1u, 3u, 8u, 9u, 16u, 40u}) {
    for (const std::size_t length : {0u, 1u, 7u, 16u, 33u, 255u, 256u, 257u, 600u}) {
      const Rows a = random_rows(count, length, stream), b = random_rows(count, length, stream);
      std::vector<float> products(count + 1, 7.0f), right = products;
      std::vector<double> squares(count + 1, 7.0), right_squares = squares;
      GetParam()->reductions.dots(starts(a).data(), starts(b).data(), count, length, products.data());
      GetParam()->reductions.squares(starts(a).data(), count, length, squares.data());
      for (std::size_t r = 0; r < count; ++r) {
        right[r] = arithmetic::dot(std::span<const float>(a[r]), std::span<const float>(b[r]));
        double sum = 0.0;
        for (const float x : a[r]) sum += double{x} * double{x};
        right_squares[r] = sum == sum ? sum : std::numeric_limits<double>::quiet_NaN();
      }
      ASSERT_EQ(bits(products), bits(right)) << count << " of " << length;
      ASSERT_EQ(bits(squares), bits(right_squares)) << count << " of " << length;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, ReductionsOfEveryTarget,
                         testing::ValuesIn(kernels::available().begin(), kernels::available().end()),
                         [](const auto& version) { return std::string(name(version.param->target)); });

}  // namespace
}  // namespace ballast
