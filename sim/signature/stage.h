#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/executor.h"
#include "sim/digest.h"

namespace ballast::sim {

/// A piece of what this build computes, on fixed inputs: `compute` takes its results into the
/// digest. No result depends on the executor.
struct Stage {
  std::string name;  ///< "kernels/route"
  std::function<void(Digest& digest, const Executor& executor)> compute;
};

/// Stages in the order in which they build on each other, so that the first one that differs is
/// nearest to the cause.

/// Elementary functions, sums, products, random streams and distributions.
std::vector<Stage> arithmetic_stages();
/// The kernels in use (core/kernels): sigmoids, routing, histograms, exact quantiles.
std::vector<Stage> kernel_stages();
/// Routers, rules of assignment, router losses, balancers, metrics, and routing of whole batches
/// (`ballast route`).
std::vector<Stage> routing_stages();
/// A step of training: forward, backward, update, and what the collector counted.
std::vector<Stage> training_stages();

}  // namespace ballast::sim
