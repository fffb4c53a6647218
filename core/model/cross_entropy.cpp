#include "core/model/cross_entropy.h"

#include "core/arithmetic/functions.h"

namespace ballast {

void cross_entropy_gradient(std::span<const float> logits, float log_sum, std::size_t target, float scale,
                            std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = logits[i] - log_sum;
  arithmetic::exp(std::span<const float>(out), out);
  out[target] -= 1.0f;
  for (float& gradient : out) gradient *= scale;
}

}  // namespace ballast
