#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/balancers/balancer.h"
#include "core/kernels/score_tile.h"
#include "core/matrix.h"

namespace ballast {

/// r_ij = alpha_i - s_ij (Kimi K3 report, Eq. 14, with the sign of b): the bias at which expert j
/// would just tie with the cutoff of token i. One fp32 rounding of the raw score against the biased
/// cutoff; a negative zero becomes +0, so that equal values have equal bits and an order statistic
/// does not depend on order.
///
/// Returns the rows of valid tokens, `[valid tokens, experts]`, in order. Linear in tokens *
/// experts. Throws as required_tile does.
Matrix<float> required_biases(const RoutedBatch& batch, std::size_t experts, std::size_t top_k);

/// The tokens of a batch whose r these are, as a view. Throws std::invalid_argument when a shape is
/// not that of `experts` and `top_k`, or when an r of a valid row is not finite; rows that are not
/// valid may hold anything.
ScoreTile required_tile(const RoutedBatch& batch, std::size_t experts, std::size_t top_k);

/// Writes the r of observed tokens behind the rows `[tokens, experts]` that are there.
void append_required_biases(const ScoreTile& tile, std::vector<float>& rows);

/// Throws std::invalid_argument, naming the state entry, unless `values` are whole rows of finite
/// r.
void check_required_biases(std::span<const float> values, std::size_t experts,
                           const std::string& name);

}  // namespace ballast
