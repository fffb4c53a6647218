#include "sim/shrink/shrink.h"

#include <algorithm>

#include "sim/input_error.h"
#include "sim/shrink/reductions.h"
#include "sim/simulation/side_by_side.h"

namespace ballast::sim {
namespace {

class Shrinker {
 public:
  Shrinker(const Aim& aim, std::size_t budget, std::size_t threads,
           const std::function<void(const Attempt&)>& tell)
      : aim_(aim), budget_(budget), threads_(threads), tell_(tell) {
    result_.scenario = without_idle_fields(aim.scenario);
  }

  Shrunk run() {
    bool changed = true;
    while (changed && !spent()) {
      changed = reduce_sizes();
      changed |= simplify();
    }
    result_.complete = !spent();
    return std::move(result_);
  }

 private:
  bool spent() const { return result_.attempts.size() >= budget_; }

  bool shows_target(const Scenario& scenario) const {
    try {
      SideBySide alone({&scenario, 1}, threads_);
      alone.advance_to(alone.steps());
      return shows(*alone.runs().front(), aim_.target);
    } catch (const InputError&) {
      return false;  // its tokens cannot be had
    }
  }

  /// Runs a smaller scenario, and keeps it when it still shows the target.
  bool attempt(const std::string& path, const Json& from, const Json& to, Scenario smaller) {
    if (spent() || !is_sound(smaller, aim_.scenario)) return false;
    Attempt made{.path = path, .from = from, .to = to, .kept = shows_target(smaller)};
    if (made.kept) result_.scenario = without_idle_fields(smaller);
    tell_(made);
    result_.attempts.push_back(std::move(made));
    return result_.attempts.back().kept;
  }

  bool attempt_size(const SizeField& field, std::uint64_t size) {
    return attempt(field.path, size_of(result_.scenario, field), size,
                   with_size(result_.scenario, field, size));
  }

  /// Bisection between the least value and the present one; in large values not to the last unit.
  bool reduce(const SizeField& field) {
    std::uint64_t kept = size_of(result_.scenario, field);
    if (kept <= field.least) return false;
    const std::uint64_t before = kept;
    if (attempt_size(field, field.least)) return true;
    std::uint64_t lost = field.least;
    while (kept - lost > std::max<std::uint64_t>(1, kept / 16) && !spent()) {
      const std::uint64_t middle = lost + (kept - lost) / 2;
      (attempt_size(field, middle) ? kept : lost) = middle;
    }
    return kept < before;
  }

  bool reduce_sizes() {
    bool changed = false;
    for (const SizeField& field : size_fields(result_.scenario)) changed |= reduce(field);
    return changed;
  }

  bool simplify() {
    bool changed = false, found = true;
    std::vector<std::string> tried;
    while (found && !spent()) {
      found = false;
      for (auto& simpler : simplifications(result_.scenario)) {
        const std::string key = simpler.path + simpler.to.dump();
        if (std::ranges::find(tried, key) != tried.end()) continue;
        tried.push_back(key);
        found = attempt(simpler.path, simpler.from, simpler.to, std::move(simpler.scenario));
        if (found) break;  // the others were made from the scenario before
      }
      changed |= found;
    }
    return changed;
  }

  const Aim& aim_;
  std::size_t budget_;
  std::size_t threads_;
  const std::function<void(const Attempt&)>& tell_;
  Shrunk result_;
};

}  // namespace

Shrunk shrink(const Aim& aim, std::size_t budget, std::size_t threads,
              const std::function<void(const Attempt&)>& tell) {
  return Shrinker(aim, budget, threads, tell).run();
}

}  // namespace ballast::sim
