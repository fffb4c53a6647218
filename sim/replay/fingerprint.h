#pragma once

#include <string>

namespace ballast::sim {

/// A digest over what this build computes with: elementary functions, sums and products, random
/// streams and distributions, on fixed inputs. Builds that agree in it and in their version make
/// the same bits of the same scenario; it is the same for every compiler, optimisation level and
/// processor that the project supports.
std::string numerics_fingerprint();

}  // namespace ballast::sim
