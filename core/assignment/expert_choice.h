#pragma once

#include <cstdint>
#include <span>

#include "core/assignment/chosen_experts.h"
#include "core/matrix.h"

namespace ballast {

/// Expert choice (arXiv:2202.09368): every expert takes the ceil(m k / E) of the m valid tokens that have its
/// largest s + b, equal values (signed zeros are equal) by lower token, NaN last. Loads are equal to the token, and a
/// token gets between none and all of the experts: k on average, up to the ceiling. Not causal: which experts a token
/// gets depends on the other tokens of the batch.
///
/// Scores s `[tokens, experts]`, b `[experts]`, `valid` `[tokens]` or empty: all are. Returns `[tokens, slots]`, a
/// token's experts in ascending order, then no_expert; rows that are not valid get none. Takes
/// tokens x experts, times the logarithm of tokens.
template <class Real>
Matrix<std::int32_t> choose_by_expert(MatrixView<const Real> scores, std::span<const float> biases,
                                      std::span<const std::uint8_t> valid, std::size_t top_k);

/// Dynamic activation (kexue.fm 11626; Expert Threshold routing, arXiv:2603.11535): a token goes to every expert with
/// s + b > 0, where -b is the expert's threshold. None to all of the experts; no other token matters. Shapes and
/// order as above; rows that are not valid choose like any other.
template <class Real>
Matrix<std::int32_t> choose_above_threshold(MatrixView<const Real> scores, std::span<const float> biases);

}  // namespace ballast
