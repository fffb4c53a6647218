#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ballast::sim {

/// Values as a row of bars ▁▂▃▄▅▆▇█, one character each, from zero up to the largest value. With
/// more than `max_width` values each bar is the mean of an equal run of them. Exactly zero (or
/// negative, or NaN) is a dot, so that an expert without load is told from one with little. No
/// values: an empty string.
std::string sparkline(std::span<const double> values, std::size_t max_width = 16);
std::string sparkline(std::span<const std::int64_t> values, std::size_t max_width = 16);

}  // namespace ballast::sim
