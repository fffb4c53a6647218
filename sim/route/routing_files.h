#pragma once

#include "sim/npy/npy_writer.h"
#include "sim/route/batch_pass.h"

namespace ballast::sim {

/// Writes the routing of a batch: indices.npy `[tokens, top_k]` int32, weights.npy `[tokens,
/// top_k]` fp32 and cutoffs.npy `[tokens]` fp32, or `[0]` when there are no cutoffs.
class RoutingFiles final : public RoutingSink {
 public:
  RoutingFiles(OutputDirectory& directory, std::size_t tokens, std::size_t top_k, bool has_cutoffs);

  void take(const RoutingRows& rows) override;
  /// Call it when all tokens are taken.
  void close();

 private:
  NpyWriter indices_, weights_, cutoffs_;
};

}  // namespace ballast::sim
