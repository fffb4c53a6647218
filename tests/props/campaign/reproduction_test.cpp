#include "props/campaign/reproduction.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/props/support/fakes.h"

namespace ballast::props {
namespace {

TEST(Reproduction, ReadsBackAndRefusesWhatItIsNot) {
  const Reproduction which{.law = "a.b:c", .seed = ~std::uint64_t{0}, .index = 17};
  EXPECT_EQ(parse_reproduction(which.text()), which);
  for (const char* text : {"", "a", "a:1", "a:1:", ":1:2", "a:-1:2", "a:1:2x", "a:18446744073709551616:1", "a: 1:2"})
    EXPECT_EQ(parse_reproduction(text), std::nullopt) << text;
}

TEST(CaseSize, BeginsSmallAndMeetsEverySize) {
  std::set<std::size_t> sizes;
  for (std::size_t i = 0; i < 101; ++i) sizes.insert(case_size(i));
  EXPECT_EQ(sizes.size(), 101u);
  EXPECT_EQ(*sizes.rbegin(), 100u);
  EXPECT_EQ(case_size(0), 0u);
  EXPECT_LT(case_size(5), case_size(20));
}

TEST(DrawCase, IsDecidedByLawSeedAndIndex) {
  const Law a = test::law_below("a", 1), b = test::law_below("b", 1);
  EXPECT_EQ(draw_case(a, 1, 5).salt, draw_case(a, 1, 5).salt);
  EXPECT_NE(draw_case(a, 1, 5).salt, draw_case(a, 1, 6).salt);
  EXPECT_NE(draw_case(a, 1, 5).salt, draw_case(a, 2, 5).salt);
  EXPECT_NE(draw_case(a, 1, 5).salt, draw_case(b, 1, 5).salt);
}

}  // namespace
}  // namespace ballast::props
