#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/executor.h"
#include "core/matrix.h"
#include "core/model/settings.h"
#include "sim/route/logit_source.h"
#include "sim/route/stage_times.h"
#include "sim/route/step_collector.h"

namespace ballast::sim {

/// What is routed: logits, and which tokens count (`[tokens]`, 0 is padding, or empty when all do).
/// Tokens that do not count are routed all the same.
struct Batch {
  LogitSource& logits;
  std::span<const std::uint8_t> valid;
};

/// Results of some tokens: indices and weights `[tokens, top_k]`, cutoffs `[tokens]` or none when
/// there are none.
struct RoutingRows {
  MatrixView<std::int32_t> indices;
  MatrixView<float> weights;
  std::span<float> cutoffs;
};

/// Takes in what was decided, in the order of the tokens.
class RoutingSink {
 public:
  virtual ~RoutingSink() = default;
  /// Memory of the sink's own for the results of the next `tokens` tokens, which are then written
  /// there; nothing if it has none.
  virtual std::optional<RoutingRows> room(std::size_t /*tokens*/) { return {}; }
  /// The results of the next tokens.
  virtual void take(const RoutingRows& rows) = 0;
};

/// What was counted in a pass over the batch.
struct PassCounts {
  std::vector<std::int64_t> loads;  ///< assignments of valid tokens, `[experts]`
  std::vector<std::int64_t>
      observed;  ///< of these, of tokens whose scores are all finite: what balancers observe
  std::int64_t valid = 0;       ///< valid tokens
  std::int64_t not_finite = 0;  ///< of these, with a score that is not finite
  StageTimes times;
};

/// Tokens [first, first + count) of a batch.
struct TokenRange {
  std::size_t first, count;
};

/// In how many tokens at a time a range of `tokens` is routed: `piece` by one thread, and `window`
/// before results are handed on.
struct PassSizes {
  std::size_t piece, window;
};
PassSizes pass_sizes(std::size_t experts, std::size_t tokens);

/// Routes the tokens of some ranges of the batch, one after the other, under the same biases, as
/// the core's Router does, to the bit. `collector` (may be null) observes the tokens that a
/// balancer does, `sink` (may be null) gets the results. Nothing depends on the executor, or on the
/// size of windows and pieces. Memory: some tens of MiB, besides the collector's. Throws
/// std::invalid_argument when a required bias to observe is not finite.
PassCounts route_ranges(const RouterSettings& settings, std::span<const float> biases,
                        const Batch& batch, std::span<const TokenRange> ranges,
                        StepCollector* collector, RoutingSink* sink, const Executor& executor);

/// All tokens.
PassCounts route_batch(const RouterSettings& settings, std::span<const float> biases,
                       const Batch& batch, StepCollector* collector, RoutingSink* sink,
                       const Executor& executor);

}  // namespace ballast::sim
