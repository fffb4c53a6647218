#include "core/random/normal_table.h"

#include <array>
#include <cstddef>

#include "core/random/distributions.h"

namespace ballast {

using kernels::NormalTable;

namespace {

constexpr std::size_t terms = NormalTable::terms;

/// Where polynomials of degree 6 on [-1/2, 1/2] meet the function: cos(pi (2 i + 1) / 14) / 2.
constexpr std::array<double, terms> chebyshev_nodes = {
    0.48746395609091184,  0.39091574123401491,  0.21694186955877903, 0.0,
    -0.21694186955877903, -0.39091574123401491, -0.48746395609091184};

/// The coefficients, in rising powers, of the polynomial through these values at the nodes
/// (Newton's divided differences).
std::array<double, terms> interpolate(std::array<double, terms> values) {
  for (std::size_t order = 1; order < terms; ++order) {
    for (std::size_t i = terms - 1; i >= order; --i) {
      values[i] = (values[i] - values[i - 1]) / (chebyshev_nodes[i] - chebyshev_nodes[i - order]);
    }
  }
  std::array<double, terms> coefficients{};
  for (std::size_t i = terms; i-- > 0;) {
    for (std::size_t power = terms - 1; power > 0; --power) {
      coefficients[power] = coefficients[power - 1] - chebyshev_nodes[i] * coefficients[power];
    }
    coefficients[0] = values[i] - chebyshev_nodes[i] * coefficients[0];
  }
  return coefficients;
}

NormalTable make_normal_table() {
  NormalTable table;
  double smallest = 0x1p-33;  // p of the octave
  for (std::size_t octave = 0; octave < NormalTable::octaves; ++octave, smallest *= 2.0) {
    std::array<double, terms> values;
    for (std::size_t i = 0; i < terms; ++i) {
      values[i] = normal_quantile(smallest * (1.5 + chebyshev_nodes[i]));
    }
    const auto coefficients = interpolate(values);
    for (std::size_t i = 0; i < terms; ++i) {
      table.coefficients[i][octave] = static_cast<float>(coefficients[i]);
    }
  }
  return table;
}

}  // namespace

const NormalTable& normal_table() {
  static const NormalTable table = make_normal_table();
  return table;
}

}  // namespace ballast
