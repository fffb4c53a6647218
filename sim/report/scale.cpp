#include "sim/report/scale.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace ballast::sim {
namespace {

double round_step(double rough) {
  double power = 1;
  while (power > rough) power /= 10;
  while (power * 10 <= rough) power *= 10;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

}  // namespace

std::vector<double> round_ticks(double low, double high, std::size_t wanted) {
  const double rough = (high - low) / static_cast<double>(std::max<std::size_t>(wanted, 1));
  // Nothing between, or less than the numbers can tell apart.
  if (!(rough > 1e-300) || rough < 1e-12 * std::max(std::abs(low), std::abs(high))) return {low};
  if (!std::isfinite(rough)) return {low, high};
  const double step = round_step(rough);
  std::vector<double> ticks;
  const double last = std::floor(high / step + 1e-9);  // no product of the end, which may overflow
  for (double n = std::ceil(low / step); n <= last; n += 1)
    ticks.push_back(n == 0 ? 0.0 : n * step);
  return ticks;
}

std::vector<std::size_t> kept_points(std::span<const double> x, std::span<const double> y,
                                     std::size_t columns) {
  std::set<std::size_t> kept;
  const std::size_t count = x.size();
  const double width = count == 0 ? 0 : (x.back() - x.front()) / static_cast<double>(columns);
  const auto column = [&](std::size_t i) {
    return std::min(static_cast<double>(columns - 1), std::floor((x[i] - x.front()) / width));
  };
  for (std::size_t begin = 0; begin < count;) {
    std::size_t end = begin + 1;
    if (count > 4 * columns) {
      while (end < count && column(end) == column(begin)) ++end;
    }
    kept.insert({begin, end - 1});
    std::size_t smallest = end, largest = end;
    for (std::size_t i = begin; i < end; ++i) {
      if (std::isnan(y[i])) {
        kept.insert(i);
        while (i + 1 < end && std::isnan(y[i + 1])) ++i;
        continue;
      }
      if (smallest == end || y[i] < y[smallest]) smallest = i;
      if (largest == end || y[i] > y[largest]) largest = i;
    }
    if (smallest != end) kept.insert({smallest, largest});
    begin = end;
  }
  return {kept.begin(), kept.end()};
}

}  // namespace ballast::sim
