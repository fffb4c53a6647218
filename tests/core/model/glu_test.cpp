#include "core/model/glu.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ballast {
namespace {

/// h for gate g and up u, through 1x1 weights of one.
float hidden(Activation activation, float g, float u, float* dgate = nullptr) {
  Glu<float> glu(1, 1, activation);
  glu.gate.weight.value(0, 0) = g;
  glu.up.weight.value(0, 0) = u;
  glu.down.weight.value(0, 0) = 1.0f;
  GluCache<float> cache(1, 1);
  Matrix<float> x(1, 1, 1.0f), y(1, 1), dy(1, 1, 1.0f), dx(1, 1);
  glu.forward(x, cache, 0, y, serial_executor());
  if (dgate != nullptr) {
    glu.backward(x, cache, 0, dy, dx, serial_executor());
    *dgate = glu.gate.weight.gradient(0, 0);
  }
  return y(0, 0);
}

TEST(Glu, HiddenValueNeverExceedsTheProductOfTheCaps) {
  for (const float g : {-1e30f, -50.0f, 0.0f, 3.0f, 40.0f, 1e30f}) {
    for (const float u : {-1e30f, -300.0f, 0.0f, 7.0f, 1e30f}) {
      EXPECT_LE(std::abs(hidden(Activation::situ, g, u)), 100.0f);
    }
  }
  EXPECT_EQ(hidden(Activation::situ, 1e30f, 1e30f), 100.0f);
}

TEST(Glu, GradientOfASaturatedGateIsExactlyZero) {
  float dgate = 1.0f;
  hidden(Activation::situ, 100.0f, 5.0f, &dgate);
  EXPECT_EQ(dgate, 0.0f);
}

TEST(Glu, SituIsSwigluForSmallArguments) {
  EXPECT_NEAR(hidden(Activation::situ, 0.01f, 0.02f), hidden(Activation::swiglu, 0.01f, 0.02f), 1e-8f);
}

TEST(Glu, SigmoidTakesTheUncappedGate) {
  const double g = 6.0, u = 2.0;
  const double expected =
      4.0 * std::tanh(g / 4.0) / (1.0 + std::exp(-g)) * 25.0 * std::tanh(u / 25.0);
  EXPECT_NEAR(hidden(Activation::situ, 6.0f, 2.0f), expected, 1e-5);
}

}  // namespace
}  // namespace ballast
