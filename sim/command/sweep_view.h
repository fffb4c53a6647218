#pragma once

#include <cstddef>
#include <iosfwd>
#include <vector>

#include "sim/sweep/run_result.h"

namespace ballast::sim {

/// The tables of a finished sweep, in 80 columns where names allow: the points, ranked by a column,
/// with its spread over seeds, and what each value of each axis makes of the columns. `top`: how
/// many points; 0 shows all.
void write_sweep_tables(const Sweep& sweep, const std::vector<RunResult>& results,
                        std::size_t rank_column, std::size_t top, std::ostream& out);

/// What a dry run shows: the points.
void write_sweep_points(const Sweep& sweep, std::ostream& out);

/// "sigma 2, balancer none": a point in words.
std::string in_words(const SweepPoint& point);

}  // namespace ballast::sim
