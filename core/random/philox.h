#pragma once

#include <array>
#include <cstdint>

namespace ballast {

/// Philox4x32-10: 128 random bits as a function of a counter and a key (Salmon, Moraes, Dror, Shaw,
/// "Parallel random numbers: as easy as 1, 2, 3", SC 2011, section 3.3). Words are least
/// significant first.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

}  // namespace ballast
