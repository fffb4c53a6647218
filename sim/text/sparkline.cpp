#include "sim/text/sparkline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

namespace ballast::sim {
namespace {

constexpr std::array<std::string_view, 8> bars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

std::string_view bar(double value, double largest) {
  if (!(value > 0.0) || std::isinf(value)) return "·";
  const double height = std::ceil(value / largest * static_cast<double>(bars.size()));
  return bars[static_cast<std::size_t>(std::clamp(height, 1.0, 8.0)) - 1];
}

/// Means of `width` runs of neighbouring values, whose lengths differ by one at most.
std::vector<double> condense(std::span<const double> values, std::size_t width) {
  std::vector<double> means;
  for (std::size_t i = 0; i < width; ++i) {
    const std::size_t begin = i * values.size() / width;
    const std::size_t end = (i + 1) * values.size() / width;
    double sum = 0.0;
    for (const double value : values.subspan(begin, end - begin)) sum += value;
    means.push_back(sum / static_cast<double>(end - begin));
  }
  return means;
}

}  // namespace

std::string sparkline(std::span<const double> values, std::size_t max_width) {
  if (values.size() > max_width) return sparkline(condense(values, max_width), max_width);
  double largest = 0.0;
  for (const double value : values) {
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  std::string line;
  for (const double value : values) line += bar(value, largest);
  return line;
}

std::string sparkline(std::span<const std::int64_t> values, std::size_t max_width) {
  const std::vector<double> reals(values.begin(), values.end());
  return sparkline(std::span<const double>(reals), max_width);
}

}  // namespace ballast::sim
