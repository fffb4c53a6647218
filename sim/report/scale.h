#pragma once

#include <span>
#include <vector>

namespace ballast::sim {

/// Round numbers (1, 2 or 5 times a power of ten apart) within [low, high], about `wanted` of them.
/// One number when low == high. Both finite, low <= high.
std::vector<double> round_ticks(double low, double high, std::size_t wanted);

/// Which points of a line stay when it is drawn on so many pixel columns: of each column the first,
/// the last, the smallest, the largest, and the first of those in a row without a value (NaN), so
/// that no spike and no gap is lost. `x` ascends and is finite. Indices, ascending; all of them
/// when that is no more than four a column.
std::vector<std::size_t> kept_points(std::span<const double> x, std::span<const double> y,
                                     std::size_t columns);

}  // namespace ballast::sim
