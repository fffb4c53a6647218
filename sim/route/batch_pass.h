#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/balancers/balancer.h"
#include "core/executor.h"
#include "core/matrix.h"
#include "core/model/settings.h"
#include "sim/route/logit_source.h"
#include "sim/route/stage_times.h"

namespace ballast::sim {

/// What is routed: logits, and which tokens count (`[tokens]`, 0 is padding, or empty when all do).
/// Tokens that do not count are routed all the same.
struct Batch {
  LogitSource& logits;
  std::span<const std::uint8_t> valid;
};

/// Takes in what was decided, in the order of the tokens.
class RoutingSink {
 public:
  virtual ~RoutingSink() = default;
  /// The next tokens: indices and weights `[tokens, top_k]`, cutoffs `[tokens]` or none when there
  /// are none.
  virtual void take(MatrixView<const std::int32_t> indices, MatrixView<const float> weights,
                    std::span<const float> cutoffs) = 0;
};

/// What was counted in a pass over the batch.
struct PassCounts {
  std::vector<std::int64_t> loads;  ///< assignments of valid tokens, `[experts]`
  std::int64_t valid = 0;           ///< valid tokens
  std::int64_t not_finite =
      0;  ///< of these, with a score that is not finite; no balancer observes them
  StageTimes times;
};

/// Routes every token of the batch under the same biases, as the core's Router does, to the bit.
/// `balancer` (may be null) observes all of it, `sink` (may be null) gets the results. Nothing
/// depends on the executor or on the size of windows and pieces. Memory: one window, some tens of
/// MiB, besides what the balancer keeps.
PassCounts route_batch(const RouterSettings& settings, std::span<const float> biases,
                       const Batch& batch, Balancer* balancer, RoutingSink* sink,
                       const Executor& executor);

}  // namespace ballast::sim
