#include "core/balancers/no_balancer.h"

#include <gtest/gtest.h>

#include "tests/core/support/bits.h"
#include "tests/core/support/matrices.h"
#include "tests/core/support/selection.h"

namespace ballast {
namespace {

using oracle::bits;

TEST(NoBalancer, StartsAtZero) {
  EXPECT_EQ(bits(NoBalancer(3).biases()), bits(std::vector<float>{0, 0, 0}));
}

TEST(NoBalancer, KeepsWhatItWasGivenWhateverIsRouted) {
  NoBalancer balancer(3);
  const std::vector<float> given{-0.0f, 2.5f, -7.0f};
  balancer.set_biases(given);
  const auto routed = oracle::route(oracle::matrix({{0.9f, 0.1f, 0.2f}}), given, 1);
  balancer.observe(routed.batch());
  balancer.end_step(true);
  balancer.observe(routed.batch());
  balancer.end_step(false);
  EXPECT_EQ(bits(balancer.biases()), bits(given));
}

TEST(NoBalancer, RoundTripsItsState) {
  NoBalancer balancer(2), other(2);
  balancer.set_biases(std::vector<float>{-0.0f, 1.5f});
  StateDict state;
  balancer.save(state, "layer.");
  other.load(state, "layer.");
  EXPECT_EQ(bits(other.biases()), bits(balancer.biases()));
}

TEST(NoBalancer, RefusesAnotherNumberOfBiases) {
  NoBalancer balancer(2), other(3);
  EXPECT_THROW(balancer.set_biases(std::vector<float>(3)), std::invalid_argument);
  StateDict state;
  other.save(state, "");
  EXPECT_THROW(balancer.load(state, ""), std::invalid_argument);
  EXPECT_EQ(balancer.biases().size(), 2u);
}

}  // namespace
}  // namespace ballast
