#include "core/state.h"

#include <gtest/gtest.h>

#include <limits>

namespace ballast {
namespace {

StateDict example() {
  StateDict state;
  state.put("floats", std::vector<float>{1.5f, -0.0f, std::numeric_limits<float>::quiet_NaN()});
  state.put("doubles", std::vector<double>{});
  state.put_scalar<std::int64_t>("step", -7);
  state.put("bytes", std::vector<std::uint8_t>{0, 255});
  return state;
}

TEST(StateDict, RoundTripsEveryBit) {
  const StateDict state = example();
  EXPECT_EQ(StateDict::from_bytes(state.to_bytes()), state);
}

TEST(StateDict, TellsApartZerosOfDifferentSign) {
  StateDict a, b;
  a.put_scalar("x", 0.0f);
  b.put_scalar("x", -0.0f);
  EXPECT_FALSE(a == b);
}

TEST(StateDict, RefusesEveryTruncation) {
  const auto bytes = example().to_bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(StateDict::from_bytes(std::span(bytes).first(size)), std::invalid_argument) << size;
  }
}

TEST(StateDict, RefusesBytesAfterTheEnd) {
  auto bytes = example().to_bytes();
  bytes.push_back(0);
  EXPECT_THROW(StateDict::from_bytes(bytes), std::invalid_argument);
}

TEST(StateDict, NamesWhatIsMissingOrOfAnotherTypeOrSize) {
  const StateDict state = example();
  EXPECT_THROW(state.get<float>("absent"), std::out_of_range);
  EXPECT_THROW(state.get<double>("floats"), std::invalid_argument);
  EXPECT_THROW(state.get<float>("floats", 2), std::invalid_argument);
  EXPECT_EQ(state.get_scalar<std::int64_t>("step"), -7);
}

}  // namespace
}  // namespace ballast
