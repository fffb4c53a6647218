#pragma once

#include <cstddef>

#include "sim/route/logit_source.h"
#include "sim/route/route_summary.h"
#include "sim/scenario/memory.h"

namespace ballast::sim {

/// What `ballast route` holds at once for these logits on so many threads. Only the mask, and with
/// quantile:exact the values near each expert's quantile, grow with the tokens. An estimate, not a
/// bound: about a factor of two.
MemoryEstimate estimate_memory(const RouteQuestion& question, const LogitSource& logits,
                               bool has_mask, std::size_t threads);

}  // namespace ballast::sim
