#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/state.h"

/// Reading back what an estimator keeps for each rank. All throw std::invalid_argument, naming the
/// entry.
namespace ballast {

/// Rank numbers, which must ascend.
std::vector<std::size_t> load_ranks(const StateDict& state, const std::string& name);
/// `size` counts, each at least 1.
std::vector<std::int64_t> load_counts(const StateDict& state, const std::string& name,
                                      std::size_t size);
/// The counts, each at least 1, must add up to `total`.
void check_total(const std::vector<std::int64_t>& counts, std::size_t total,
                 const std::string& name);

}  // namespace ballast
