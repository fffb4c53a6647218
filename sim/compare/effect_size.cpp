#include "sim/compare/effect_size.h"

#include <cmath>
#include <cstdint>

#include "sim/sweep/summary.h"

namespace ballast::sim {
namespace {

/// -1, 0 or 1 as a is below, equal to, or above b.
int order(const std::optional<double>& a, const std::optional<double>& b) {
  if (!a || !b) return static_cast<int>(b.has_value()) - static_cast<int>(a.has_value());
  return static_cast<int>(*a > *b) - static_cast<int>(*a < *b);
}

}  // namespace

std::optional<double> cliffs_delta(Sample a, Sample b) {
  if (a.empty() || b.empty()) return std::nullopt;
  std::int64_t above = 0;
  for (const auto& from_b : b) {
    for (const auto& from_a : a) above += order(from_b, from_a);
  }
  return static_cast<double>(above) / static_cast<double>(a.size() * b.size());
}

std::string_view magnitude(double delta) {
  const double size = std::abs(delta);
  if (size < 0.147) return "negligible";
  if (size < 0.33) return "small";
  return size < 0.474 ? "medium" : "large";
}

std::optional<double> median(Sample values) {
  return spread_of({values.begin(), values.end()}, /*less_is_better=*/true).median;
}

}  // namespace ballast::sim
