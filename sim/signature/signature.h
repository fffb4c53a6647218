#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/executor.h"
#include "sim/scenario/scenario_file.h"

namespace ballast::sim {

/// Where in a signature something was computed: a stage on fixed inputs, or something in a
/// scenario's run.
struct SignaturePlace {
  std::string
      stage;  ///< "kernels/route"; in a run "choices", "weights", "biases", "loads", "loss", ...
  std::string run = {};  ///< "quickstart/quantile"; empty outside runs
  std::optional<std::size_t> step = std::nullopt;
  std::optional<std::size_t> layer = std::nullopt;

  friend bool operator==(const SignaturePlace&, const SignaturePlace&) = default;
};

/// "quickstart/quantile, step 3, layer 1: choices".
std::string in_words(const SignaturePlace& place);

struct SignatureEntry {
  SignaturePlace place;
  std::string digest;

  friend bool operator==(const SignatureEntry&, const SignatureEntry&) = default;
};

/// Digests in the order in which what they are of is computed, so that the first one that differs
/// between two builds is nearest to the cause. The same for every compiler, optimisation, processor
/// and number of threads.
using Signature = std::vector<SignatureEntry>;

/// One digest over all places and their digests.
std::string digest_of(const Signature& signature);

/// All stages (sim/signature/stage.h).
Signature stage_signature(const Executor& executor);

/// The runs of a scenario file: for each step of each run, layer by layer the choices and their
/// weights, then the biases and the loads, then the loss; evaluations, and the final state. Loads
/// and loss are digests of all that is recorded of the layer and of the step. After each step it
/// calls `progress(completed, all)`.
Signature run_signature(const ScenarioFile& file, std::size_t threads,
                        const std::function<void(std::size_t, std::size_t)>& progress);

/// The first place in which the digests differ; nothing when there is none. Both signatures must be
/// of the same places.
std::optional<SignaturePlace> first_difference(std::span<const SignatureEntry> a,
                                               std::span<const SignatureEntry> b);

}  // namespace ballast::sim
