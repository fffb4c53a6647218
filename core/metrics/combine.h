#pragma once

#include <span>

#include "core/metrics/forward_backward_output.h"

namespace ballast {

/// The output of a batch from the outputs of its chunks. Source: Tinker's chunk combiner
/// (`lib/chunked_fwdbwd_helpers`).
///
/// Records are concatenated in chunk order; the output type is the first chunk's. Metrics are those
/// of the first chunk whose reduction is known and which every other chunk has too; other keys are
/// dropped. A chunk weighs as much as it has data (records), not tokens. x_c is a metric's value in
/// chunk c, w_c the weight:
///
///     mean             sum w_c x_c / sum w_c
///     slack            max x_c - mean: how far the mean trails the worst chunk; 0 for a single
///     one, so that
///                      it must not be combined twice
///     sum, min, max    unweighted
///     unique           every value is kept: the first under the key, those of chunks 1, 2, ...
///     under `key_1`,
///                      `key_2`, ...; when combined again those have an unknown reduction and are
///                      dropped
///     hash_unordered   a hash of the values, cut to integers towards zero, as a multiset
///
/// No chunks give an empty output. Order of checks per key, in key order: its form, its reduction,
/// its presence in all chunks, its values.
///
/// Decisions where the source leaves room:
/// - The mean is kept within the values' range, so equal values keep their value to the bit and
/// slack >= 0.
/// - NaN in any chunk gives NaN under mean, slack, sum, min and max, wherever it stands; infinities
/// follow
///   IEEE 754 (a chunk without data weighs 0, and 0 * infinity is NaN). `unique` passes any value
///   on.
/// - A zero under mean, slack, sum, min and max is +0.
/// - A hash is an integer in [0, 2^53), exact in a double and the same everywhere (Python's hash of
/// a tuple
///   is neither). -0 and 0 are equal. It stands for equality only; its values compare with no other
///   tool's.
///
/// Complexity: linear in the data and metrics (times log for hash_unordered).
/// Errors, all std::invalid_argument that names the metric and the chunk:
/// - a key of the first chunk that has not exactly one ':' (as the source);
/// - mean or slack where no chunk has any data (the source divides by zero);
/// - hash_unordered of a NaN or an infinity (as the source, which has no integer for them).
ForwardBackwardOutput combine(std::span<const ForwardBackwardOutput> chunks);

}  // namespace ballast
