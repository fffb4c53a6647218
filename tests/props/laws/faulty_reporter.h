#pragma once

#include <memory>

#include "props/subjects/subject.h"

namespace ballast::props {

/// What a subject can report wrongly about loads, snapshots and chunks.
enum class ReporterFault {
  // Metrics of loads
  tokens_as_divisor,      ///< fair = sum / (k E) with k = 2
  pooled_layers,          ///< one layer of all loads
  over_the_wrong_axis,    ///< per expert over layers
  sum_over_layers,        ///< instead of the mean
  weak_oversubscription,  ///< load >= fair
  sample_is_clipped,      ///< max_violation is 0 below 1/2
  counts_in_32_bits,
  last_expert_is_lost,
  empty_layers_count,  ///< with figures of 0
  empty_layers_are_nan,
  shares_sorted_by_index,  ///< an expert's load weighs by its index
  // Snapshots
  tokens_are_assignments,
  mean_over_used_experts,
  zeros_without_assignments,  ///< instead of nulls
  zero_load_means_at_most_one,
  biases_of_zeros,
  nonfinite_as_zero,
  // Chunks
  unweighted_mean,
  slack_of_minimum,
  last_unique,  ///< only the last value
  keys_of_any_chunk,
  keeps_unknown,
  weighs_first_chunk_double,
  slack_of_one_is_itself,
  zero_data_gives_zero,
  takes_any_key,
  ordered_hash,
  hash_of_sum,
  nan_is_skipped,
};

/// The built-in subject with a fault in its reports.
std::unique_ptr<Subject> faulty_reporter(ReporterFault fault);

}  // namespace ballast::props
