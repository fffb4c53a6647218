#pragma once

#include <cstddef>
#include <span>

namespace ballast {

/// sum_i += term_i, for arrays of equal size.
template <class Real>
void add_to(std::span<Real> sum, std::span<const Real> term) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += term[i];
}

}  // namespace ballast
