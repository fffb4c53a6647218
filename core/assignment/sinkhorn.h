#pragma once

#include <cstdint>
#include <span>

#include "core/matrix.h"

namespace ballast {

struct SinkhornSettings {
  std::size_t iterations_max = 100;
  double tolerance = 1e-4;  ///< on the mean |change| of d1, at which iterating ends
};

struct SinkhornPlan {
  Matrix<double> plan;         ///< d0_i c_ij d1_j, `[tokens, experts]`
  std::size_t iterations = 0;  ///< done; iterations_max if the tolerance was not met
};

/// Balances e^logits towards rows that sum to 1 / m and columns that sum to 1 / E (Sinkhorn 1967; as in
/// Megatron-LM's router):
///     c_ij = e^(z_ij - max_j z_ij),    d1_j = 1
///     d0_i = 1 / (m (sum_j d1_j c_ij + 1e-8)),    d1_j = 1 / (E (sum_i d0_i c_ij + 1e-8))
/// Taking off the row's maximum changes d0 alone, up to the guard, and nothing can overflow, where Megatron's
/// e^z does above 88. Megatron has no cap on iterations.
///
/// Rows without `valid` (`[tokens]`, or empty: all are) take no part in the sums; their row of the plan is made with the
/// d1 of the others. In double, sums over tokens in their order: permuting tokens can change last bits. Takes
/// tokens x experts an iteration. Throws std::invalid_argument without an iteration.
template <class Real>
SinkhornPlan sinkhorn_plan(MatrixView<const Real> logits, std::span<const std::uint8_t> valid,
                           const SinkhornSettings& settings);

}  // namespace ballast
