#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/recordings/recorded_routing.h"
#include "sim/recordings/routing_row.h"

namespace ballast::sim {

struct ReadSettings {
  std::optional<RowSchema> schema;  ///< of JSON lines; not given: the format is found in the file
  std::optional<std::size_t> experts;  ///< E, stronger than what the file says
  std::optional<std::size_t> top_k;    ///< stronger than what the file says
  bool skip_warm_up = false;
  /// Hears of each row that is counted, in the order of the file but for rows that were first taken
  /// for duplicates. Rows of a warm-up are among them (see RecordedLayer::warm_up_rows). Tables of
  /// loads have no rows.
  std::function<void(const RoutingRow&)> on_row = nullptr;
};

/// The loads in a recording, one for each trace that it holds (most formats hold one). Formats,
/// told apart by their content:
/// - JSON lines with `layer`, `experts`, and perhaps `gating_probs`, `token_idx`, `dataset`,
/// `problem_id`;
/// - JSON lines of type `meta` (num_experts, top_k) and `route` (layer, topk_ids, topk_weights,
/// token_idx,
///   req_id);
/// - JSON lines of any other kind, by `schema`;
/// - CSV of load counts: columns expert and count (or count_topk, count_top1), and perhaps model,
/// domain, layer,
///   num_experts, top_k, token_id; each model and domain is a trace, and its count_top1 another,
///   "...#top1";
/// - one JSON object with `selections[token][layer][top_k]`, or with `load[layer][expert]`.
///
/// Throws InputError for a file that cannot be read or is of no such format. A faulty row is not
/// fatal: it is left out and is in `problems`. Lines are streamed: memory does not grow with their
/// number, but for the bounded sets of CellCheck.
std::vector<RecordedRouting> read_recording(const std::string& path, const ReadSettings& settings);

}  // namespace ballast::sim
