#include "sim/route/routing_files.h"

namespace ballast::sim {

RoutingFiles::RoutingFiles(OutputDirectory& directory, std::size_t tokens, std::size_t top_k,
                           bool has_cutoffs)
    : indices_(directory, "indices.npy", npy_dtype<std::int32_t>, {tokens, top_k}),
      weights_(directory, "weights.npy", npy_dtype<float>, {tokens, top_k}),
      cutoffs_(directory, "cutoffs.npy", npy_dtype<float>, {has_cutoffs ? tokens : 0}) {}

void RoutingFiles::take(const RoutingRows& rows) {
  indices_.append<std::int32_t>(rows.indices.values());
  weights_.append<float>(rows.weights.values());
  cutoffs_.append<float>(rows.cutoffs);
}

void RoutingFiles::close() {
  indices_.close();
  weights_.close();
  cutoffs_.close();
}

}  // namespace ballast::sim
