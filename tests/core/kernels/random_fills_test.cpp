#include "core/kernels/random_fills.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/kernels/kernels.h"
#include "core/random/normal_table.h"

namespace ballast {
namespace {

using kernels::Kernels;
using kernels::RandomFill;

enum class Kind { uniform, normal, log_normal, gumbel };
constexpr Kind all_kinds[] = {Kind::uniform, Kind::normal, Kind::log_normal, Kind::gumbel};

std::vector<float> filled(const Kernels& kernels, Kind kind, std::uint64_t key,
                          std::uint64_t position, std::size_t count) {
  constexpr float untouched = -123.0f;
  std::vector<float> values(count + 1, untouched);
  const RandomFill fill{.key = key, .position = position, .out = values.data(), .count = count};
  switch (kind) {
    case Kind::uniform:
      kernels.random.uniform(fill);
      break;
    case Kind::normal:
      kernels.random.normal(fill, normal_table());
      break;
    case Kind::log_normal:
      kernels.random.log_normal(fill, normal_table(), 30.0f);  // to overflow and underflow
      break;
    case Kind::gumbel:
      kernels.random.gumbel(fill);
      break;
  }
  EXPECT_EQ(values.back(), untouched) << "written behind the end";
  values.pop_back();
  return values;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class RandomFillsOfEveryTarget : public testing::TestWithParam<const Kernels*> {
 protected:
  void expect_reference(Kind kind, std::uint64_t key, std::uint64_t position, std::size_t count) {
    const Kernels& reference = *kernels::available().front();
    EXPECT_TRUE(same_bits(filled(*GetParam(), kind, key, position, count),
                          filled(reference, kind, key, position, count)))
        << "kind " << static_cast<int>(kind) << ", key " << key << ", position " << position << ", "
        << count << " values";
  }
};

TEST_P(RandomFillsOfEveryTarget, HaveTheBitsOfTheReferenceForEveryLengthAndPosition) {
  for (const Kind kind : all_kinds) {
    for (std::size_t count = 0; count < 300; count += count < 40 ? 1 : 37) {
      for (const std::uint64_t position : {0, 1, 2, 3, 1001}) {
        expect_reference(kind, 0x0123456789abcdefu, position, count);
      }
    }
  }
}

TEST_P(RandomFillsOfEveryTarget, HaveTheBitsOfTheReferenceOverMillionsOfWords) {
  for (const Kind kind : all_kinds) expect_reference(kind, 99, 0, (std::size_t{1} << 21) + 5);
}

TEST_P(RandomFillsOfEveryTarget, GoOnWhereCountersCarryAndWhereTheStreamBeginsAnew) {
  for (const Kind kind : all_kinds) {
    expect_reference(kind, 5, (std::uint64_t{1} << 33) - 20, 300);
    expect_reference(kind, 5, ~std::uint64_t{0} - 20, 300);
  }
}

std::string target_name(const testing::TestParamInfo<const Kernels*>& info) {
  return std::string(name(info.param->target));
}

INSTANTIATE_TEST_SUITE_P(Kernels, RandomFillsOfEveryTarget,
                         testing::ValuesIn(std::vector<const Kernels*>(
                             kernels::available().begin() + 1, kernels::available().end())),
                         target_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RandomFillsOfEveryTarget);

}  // namespace
}  // namespace ballast
