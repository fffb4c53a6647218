#pragma once

#include <cstddef>
#include <span>

namespace ballast {

/// The gradient of the loss -log softmax(logits)[target], times `scale`:
///     out = (softmax(logits) - onehot(target)) * scale,
/// where `log_sum` is the log_sum_exp of the logits; `out` has their size. Linear in it.
void cross_entropy_gradient(std::span<const float> logits, float log_sum, std::size_t target, float scale,
                            std::span<float> out);

}  // namespace ballast
