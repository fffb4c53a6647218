#pragma once

#include <cstdint>
#include <span>

#include "core/matrix.h"

namespace ballast {

/// The balanced assignment with the largest total score (BASE, arXiv:2103.16716, for any k; the
/// program that quantile balancing relaxes, Kimi K3 report App. C, Eq. 20):
///
///     maximise sum_ij x_ij s_ij,  sum_j x_ij = k,  floor(q) <= sum_i x_ij <= ceil(q),
///     x_ij 0 or 1,  q = m k / E
///
/// over the m valid tokens. A bound for every balancer on the batch: none that balances can have a
/// larger total. Not causal.
///
/// Exact for scores rounded to 2^-40 of the largest one in size; integers inside, so the result
/// depends on nothing else. Among assignments of equal total it is one of them, always the same.
/// Scores s `[tokens, experts]` of valid rows must be finite; top_k <= experts. Returns `[tokens,
/// top_k]`, a token's experts in ascending order; rows that are not valid (`valid` `[tokens]`, or
/// empty: all are) get their k largest scores.
///
/// Method: quantile balancing steps on the batch give prices under which the k best experts of each
/// token are optimal for the loads that result; assignments then move one by one from experts that
/// have too many to others along cheapest paths between experts, which keeps that (successive
/// shortest paths with potentials; Ahuja, Magnanti, Orlin, "Network Flows", 1993, ch. 9), until no
/// move is left that is needed or gains.
///
/// Time: tokens * top_k * experts once, and experts^2 + tokens * top_k for a move and each expert
/// on its path (seldom more than a few); there are about as many moves as the prices leave loads
/// off q. Memory: 9 tokens * experts + 16 experts^2 bytes.
template <class Real>
Matrix<std::int32_t> assign_optimally(MatrixView<const Real> scores,
                                      std::span<const std::uint8_t> valid, std::size_t top_k);

}  // namespace ballast
