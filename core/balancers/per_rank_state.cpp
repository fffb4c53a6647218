#include "core/balancers/per_rank_state.h"

#include <algorithm>
#include <functional>
#include <stdexcept>

namespace ballast {

namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw std::invalid_argument("state: entry \"" + name + "\" " + why);
}

}  // namespace

std::vector<std::size_t> load_ranks(const StateDict& state, const std::string& name) {
  const auto& ranks = state.get<std::int64_t>(name);
  const bool ascend =
      std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>()) == ranks.end();
  if (!ascend || (!ranks.empty() && ranks.front() < 0))
    refuse(name, "is not an ascending list of ranks");
  return {ranks.begin(), ranks.end()};
}

std::vector<std::int64_t> load_counts(const StateDict& state, const std::string& name,
                                      std::size_t size) {
  const auto& counts = state.get<std::int64_t>(name, size);
  if (std::any_of(counts.begin(), counts.end(), [](std::int64_t count) { return count < 1; })) {
    refuse(name, "has a count below 1");
  }
  return counts;
}

void check_total(const std::vector<std::int64_t>& counts, std::size_t total,
                 const std::string& name) {
  std::size_t left = total;
  for (const std::int64_t count : counts) {
    if (static_cast<std::size_t>(count) > left) refuse(name, "adds up to more than there is");
    left -= static_cast<std::size_t>(count);
  }
  if (left != 0) refuse(name, "adds up to less than there is");
}

}  // namespace ballast
