#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "sim/scenario/scenario_file.h"
#include "sim/sweep/points.h"

namespace ballast::sim {

/// The format of sweep files that this program reads: the value of the key "ballast_sweep".
inline constexpr int sweep_format = 1;

/// Why a point cannot be run: its values contradict each other.
struct Impossible {
  std::string reason;
};

/// A sweep, resolved: `points` scenarios, each run with `seeds` seeds. Runs are numbered from 0,
/// point by point: run r is point r / seeds with the seed base.seed + r % seeds.
struct Sweep {
  std::string name;
  std::string description;
  std::string origin;  ///< the file
  Scenario base;
  std::vector<std::string> axes;  ///< names, in the order of the file
  std::vector<SweepPoint> points;
  std::vector<std::variant<Scenario, Impossible>> scenarios;  ///< of the points
  std::size_t seeds = 1;

  std::size_t runs() const { return points.size() * seeds; }
  std::size_t point_of(std::size_t run) const { return run / seeds; }
  std::uint64_t seed_of(std::size_t run) const { return base.seed + run % seeds; }
};

/// Reads a sweep file of at most 16 MiB:
///
///     {"ballast_sweep": 1, "base": "scenario.json" or {a scenario}, "axes": [...], ...}
///
/// The base is named relative to the file's folder. Overrides go to the base. Throws InputError for
/// everything that is wrong, in the base too: also when an override sets what an axis sets, and
/// when not a single point can be run. A point whose values contradict each other is Impossible.
Sweep load_sweep(const std::string& file, std::span<const Override> overrides = {});
/// The same from text; `folder` is where the base is looked for.
Sweep parse_sweep(std::string_view text, const std::string& origin, const std::string& folder,
                  std::span<const Override> overrides = {});

/// What is run, complete, as it stands in a results directory: format, version of this program,
/// name, axes, base, seeds, columns, and a digest over the scenarios of all points. Two sweeps that
/// are equal here have the same results to the bit.
Json identity_of(const Sweep& sweep);

}  // namespace ballast::sim
