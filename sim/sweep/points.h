#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/sweep/axis.h"

namespace ballast::sim {

/// How the values of the axes make points.
enum class SweepMode {
  grid,    ///< every value with every other; the last axis varies fastest
  zip,     ///< the first values of all axes, the second ones, ...
  random,  ///< each value drawn on its own, as many points as the budget says
};

/// One setting of the fields that a sweep varies.
struct SweepPoint {
  Json axes;  ///< {axis name: label}
  std::vector<Override> settings;
};

inline constexpr std::size_t most_points = 100'000;

/// All points. The axes of `zip` have equally many values; only those of `random` may lack them. A
/// larger budget goes on where a smaller one ends: point i comes from streams of `seed` named by i
/// and the axis. There are at most `most_points`; otherwise std::length_error.
std::vector<SweepPoint> make_points(std::span<const Axis> axes, SweepMode mode, std::size_t budget,
                                    std::uint64_t seed);

}  // namespace ballast::sim
