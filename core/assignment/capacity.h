#pragma once

#include <cstdint>
#include <span>

#include "core/matrix.h"

namespace ballast {

/// Which assignments an expert keeps that has more than its capacity.
enum class DropPolicy {
  none,      ///< all: there is no capacity
  probs,     ///< those with the largest weights p
  position,  ///< those of the first tokens of the batch
};

struct CapacitySettings {
  DropPolicy drop = DropPolicy::none;
  double factor = 1.25;  ///< cf > 0
};

/// C = ceil(cf m k / E), of m valid tokens (Switch Transformer, arXiv:2101.03961, Eq. 3; GShard; Megatron-LM).
std::int64_t expert_capacity(double factor, std::int64_t tokens, std::size_t top_k, std::size_t experts);

/// `indices` `[tokens, slots]` with no_expert in place of what goes beyond `capacity` for an expert. With
/// DropPolicy::probs an expert keeps the assignments with the largest weights p `[tokens, slots]`, equal ones (and NaN,
/// which is last) by lower token; with DropPolicy::position those of the first tokens, where Megatron-LM leaves it to the order that an
/// unstable top-k has for ties. Rows that are not valid (`valid` `[tokens]`, or empty: all are) are dropped whole and
/// take no capacity. Linear in assignments, times the logarithm of the largest load.
template <class Real>
Matrix<std::int32_t> drop_beyond(std::int64_t capacity, DropPolicy policy, MatrixView<const std::int32_t> indices,
                                 MatrixView<const Real> weights, std::span<const std::uint8_t> valid,
                                 std::size_t experts);

}  // namespace ballast
