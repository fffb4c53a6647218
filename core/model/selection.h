#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/matrix.h"
#include "core/model/expert_groups.h"

namespace ballast {

/// Which experts each token goes to.
template <class Real>
struct Selection {
  Matrix<std::int32_t> indices;  ///< `[tokens, top_k]`, distinct, best first; what other rules choose: see there
  std::vector<Real> cutoffs;     ///< alpha `[tokens]`: the (k+1)-th largest of s + b; empty when k = E, or if there is none
};

/// Chooses, for every row of raw scores s `[tokens, experts]`, the `top_k` largest of s + b under a total order:
/// larger values first, equal values (signed zeros are equal) by lower expert index. A NaN comes after every
/// number, minus infinity included, so exactly top_k distinct experts are chosen in every case.
///
/// b has one entry an expert; 1 <= top_k <= experts. Linear in tokens x experts, times a factor that is near 1
/// for scores in no particular order and at most top_k for rows that ascend.
/// Source: Kimi K3 report Eq. 13; the order among ties is this project's.
template <class Real>
Selection<Real> select_top_k(MatrixView<const Real> scores, std::span<const float> biases,
                             std::size_t top_k);

/// The same by the plain method that says what select_top_k computes; float goes by kernels otherwise.
template <class Real>
Selection<Real> select_by_insertion(MatrixView<const Real> scores, std::span<const float> biases,
                                    std::size_t top_k);

/// The same among the experts of the best groups only. A group's score is the sum, best first, of the largest
/// groups.scored(k) of its s + b; the `chosen` groups with the largest scores are taken, under the same total order
/// (equal scores by lower group). All other experts are excluded, whatever their scores: never chosen, however
/// negative s + b is.
///
/// There are no cutoffs: whether a bias brings an expert in also depends on what it does to its group's score.
/// The groups must have no problem(). Linear in tokens x experts as above.
/// Source: DeepSeek-V3 (arXiv:2412.19437), section 2.1.2; Megatron-LM's group_limited_topk.
template <class Real>
Selection<Real> select_group_limited_top_k(MatrixView<const Real> scores, std::span<const float> biases,
                                           std::size_t top_k, const ExpertGroups& groups);

/// Adds one to counts[j] for every assignment to expert j of a row that is valid (`valid` `[tokens]`, 0 is padding,
/// or empty when every row is valid). Indices `[tokens, slots]`, of which no_expert counts for nothing; counts
/// `[experts]`.
void count_assignments(MatrixView<const std::int32_t> indices, std::span<const std::uint8_t> valid,
                       std::span<std::int64_t> counts);

}  // namespace ballast
