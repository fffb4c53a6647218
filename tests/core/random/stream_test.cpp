#include "core/random/stream.h"

#include <gtest/gtest.h>

#include <array>
#include <boost/random/uniform_01.hpp>
#include <boost/random/uniform_int_distribution.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/random/philox.h"

namespace ballast {
namespace {

using Counter = std::array<std::uint32_t, 4>;
using Key = std::array<std::uint32_t, 2>;

/// The known answers that Random123 publishes for philox4x32-10.
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox(Counter{}, Key{}), (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox(Counter{ones, ones, ones, ones}, Key{ones, ones}),
            (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      philox(Counter{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, Key{0xa4093822, 0x299f31d0}),
      (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Stream, DrawsTheBlocksOfItsKeyInOrder) {
  Stream stream(0);
  EXPECT_EQ(stream(), 0xe169c58d6627e8d5u);
  EXPECT_EQ(stream(), 0x9b00dbd8bc57ac4cu);
  const Counter second = philox({1, 0, 0, 0}, {0, 0});
  EXPECT_EQ(stream(), second[0] | (std::uint64_t{second[1]} << 32));
  EXPECT_EQ(stream.position(), 3u);
}

TEST(Stream, ReachesEveryPositionAtOnce) {
  Stream stream(7);
  std::vector<std::uint64_t> draws;
  for (int i = 0; i < 100; ++i) draws.push_back(stream());
  for (const std::size_t position : {99u, 0u, 50u, 51u, 1u}) {
    stream.seek(position);
    EXPECT_EQ(stream(), draws[position]);
  }
  stream.seek(std::uint64_t{1} << 40);
  const auto far = philox({std::uint32_t{1} << 31, 1 << 7, 0, 0}, {7, 0});
  stream.seek(((std::uint64_t{1} << 39) + (std::uint64_t{1} << 31)) * 2);
  EXPECT_EQ(stream() & 0xffffffff, far[0]);
}

TEST(Stream, IsEqualInKeyAndPosition) {
  Stream a(1), b(1);
  EXPECT_EQ(a, b);
  a();
  EXPECT_NE(a, b);
  a.seek(0);
  EXPECT_EQ(a, b);
  EXPECT_NE(a, Stream(2));
}

TEST(Stream, HasChildrenThatDoNotDependOnWhereItStands) {
  Stream parent(3);
  const Stream before = parent.child("tokens");
  parent();
  EXPECT_EQ(parent.child("tokens"), before);
  EXPECT_EQ(before.position(), 0u);
}

TEST(Stream, HasDifferentChildrenForDifferentNamesPathsAndIndices) {
  const Stream root(11);
  std::set<std::uint64_t> first_draws;
  std::size_t count = 0;
  const auto add = [&](Stream stream) { first_draws.insert(stream()), ++count; };
  add(root);
  using namespace std::string_literals;
  for (const auto& name : {""s, "\0"s, "\0\0"s, "a"s, "b"s, "a\0"s, "ab"s, "tokens"s, "token"s,
                           "12345678"s, "123456780"s, "12345678\0"s, "1234567812345678"s}) {
    add(root.child(name));
    add(root.child("x").child(name));
    add(root.child(name).child("x"));
  }
  for (std::uint64_t index = 0; index < 1000; ++index) {
    add(root.child(index));
    add(root.child("x").child(index));
    add(Stream(index + 100));
  }
  EXPECT_EQ(first_draws.size(), count);
}

TEST(Stream, HasTheKnownChildren) {
  EXPECT_EQ(Stream(1).child("tokens")(), 0x5cf21591494c6364u);
  EXPECT_EQ(Stream(1).child("a name longer than eight bytes")(), 0xd0cadd5e9d93ffe9u);
  EXPECT_EQ(Stream(1).child("")(), 0x967c57fec488dea4u);
  EXPECT_EQ(Stream(1).child("tokens").child(5)(), 0xbe34492572734e35u);
}

TEST(Stream, IsAnEngineForBoostRandom) {
  Stream stream(5);
  boost::random::uniform_int_distribution<int> die(1, 6);
  boost::random::uniform_01<double> unit;
  std::array<int, 7> faces{};
  double mean = 0;
  constexpr int count = 6000;
  for (int i = 0; i < count; ++i) {
    ++faces.at(static_cast<std::size_t>(die(stream)));
    mean += unit(stream) / count;
  }
  EXPECT_EQ(faces[0], 0);
  for (int face = 1; face <= 6; ++face)
    EXPECT_NEAR(faces[static_cast<std::size_t>(face)], 1000, 150);
  EXPECT_NEAR(mean, 0.5, 0.02);
}

TEST(Stream, DrawsBitsThatAreOneHalfOfTheTimeAndUncorrelated) {
  Stream stream(9);
  constexpr int count = 20000;
  std::array<int, 64> ones{}, repeats{};
  std::uint64_t last = stream();
  for (int i = 0; i < count; ++i) {
    const std::uint64_t draw = stream();
    for (std::size_t bit = 0; bit < 64; ++bit) {
      ones[bit] += static_cast<int>(draw >> bit & 1);
      repeats[bit] += static_cast<int>((draw ^ last) >> bit & 1);
    }
    last = draw;
  }
  const double five_deviations = 5 * 0.5 * 141.42;  // sqrt(20000)
  for (std::size_t bit = 0; bit < 64; ++bit) {
    EXPECT_NEAR(ones[bit], count / 2, five_deviations) << bit;
    EXPECT_NEAR(repeats[bit], count / 2, five_deviations) << bit;
  }
}

}  // namespace
}  // namespace ballast
