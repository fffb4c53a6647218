#include "sim/collapse/noise.h"

#include <limits>

#include "core/arithmetic/functions.h"

namespace ballast::sim {

double noise_violation(double q, std::size_t experts) {
  if (!(q > 0.0)) return std::numeric_limits<double>::infinity();
  const double wanted = arithmetic::log(1000.0 * static_cast<double>(experts)) / q;
  const auto rate = [](double delta) {
    return (1.0 + delta) * arithmetic::log(1.0 + delta) - delta;
  };
  double low = 0.0, high = 1.0;
  while (rate(high) < wanted) high *= 2.0;
  for (int halving = 0; halving < 60; ++halving) {
    const double middle = 0.5 * (low + high);
    (rate(middle) < wanted ? low : high) = middle;
  }
  return high;
}

}  // namespace ballast::sim
