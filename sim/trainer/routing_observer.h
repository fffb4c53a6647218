#pragma once

#include <cstddef>
#include <cstdint>

#include "core/matrix.h"

namespace ballast::sim {

/// Sees what training forwards route, and changes nothing. Views are valid during the call only.
class RoutingObserver {
 public:
  virtual ~RoutingObserver() = default;

  /// A training forward of one layer: the chosen experts, best first, and their weights, both
  /// `[tokens, top_k]`, padding included: of a token with more experts the first ones, of one with
  /// fewer no_expert in the rest. The micro-batches of a layer come in their order, rank by
  /// rank; different layers may be on different threads.
  virtual void routed(std::size_t layer, MatrixView<const std::int32_t> choices,
                      MatrixView<const float> weights) = 0;
};

}  // namespace ballast::sim
