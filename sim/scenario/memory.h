#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/scenario/scenario.h"

namespace ballast::sim {

struct MemoryTerm {
  std::string name;
  std::uint64_t bytes = 0;
};

/// What a run would hold at once, before anything is allocated. Sums saturate: what is beyond 2^64
/// - 1 bytes is 2^64 - 1.
struct MemoryEstimate {
  std::vector<MemoryTerm> terms;

  std::uint64_t bytes() const;
  const MemoryTerm& largest() const;
};

/// The terms are the large ones: parameters (value, gradient, two moments), checkpoints,
/// activations of a micro-batch, the balancer's pending observations, the records of all steps,
/// token tables, and the text file. An estimate, not a bound: about a factor of two.
MemoryEstimate estimate_memory(const Scenario& scenario);

/// Learned numbers of the model, about: for words like "54 thousand parameters".
std::uint64_t parameter_count(const Scenario& scenario);

/// 80 % of the machine's physical memory.
std::uint64_t default_memory_limit_bytes();

/// In words: "about 120 MiB, most of it for ...".
std::string memory_text(const MemoryEstimate& estimate);

/// What runs would together hold, in words.
std::string memory_text(std::span<const Scenario> runs);

/// Refuses runs that would together hold more than the limit: throws InputError with the estimate
/// and its largest term. `origin` is the file they come from.
void check_memory(std::span<const Scenario> runs, const std::string& origin,
                  std::uint64_t limit_bytes = default_memory_limit_bytes());

}  // namespace ballast::sim
