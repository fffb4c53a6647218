#pragma once

#include "core/kernels/random_fills.h"

namespace ballast {

/// The table of fill_normal: for each octave the polynomial that agrees with normal_quantile at the
/// Chebyshev nodes, computed in double and rounded to fp32, so that it has the same bits
/// everywhere.
const kernels::NormalTable& normal_table();

}  // namespace ballast
