#include "core/model/cross_entropy.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/arithmetic/reductions.h"

namespace ballast {
namespace {

TEST(CrossEntropyGradient, IsSoftmaxLessTheTargetTimesTheScale) {
  const std::vector<float> logits = {-1.5f, 0.0f, 3.0f, 0.25f, -20.0f};
  std::vector<float> softmax(5), gradient(5);
  arithmetic::softmax(logits, softmax);
  const float log_sum = arithmetic::log_sum_exp(std::span<const float>(logits));
  cross_entropy_gradient(logits, log_sum, 3, 1024.0f, gradient);
  for (std::size_t i = 0; i < 5; ++i) {
    const float expected = (softmax[i] - (i == 3 ? 1.0f : 0.0f)) * 1024.0f;
    EXPECT_NEAR(gradient[i], expected, 1e-3f);
  }
}

}  // namespace
}  // namespace ballast
