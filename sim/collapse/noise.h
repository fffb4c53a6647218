#pragma once

#include <cstddef>

namespace ballast::sim {

/// The max violation of `experts` loads of mean q that chance alone exceeds with a probability
/// below 1 in 1000, when a perfectly calibrated router sends tokens independently: the delta with
/// q ((1 + delta) ln(1 + delta) - delta) = ln(1000 experts) (Chernoff's bound and a union over
/// experts; for large q it is sqrt(2 ln(1000 E) / q)). Infinite for q = 0.
double noise_violation(double q, std::size_t experts);

}  // namespace ballast::sim
