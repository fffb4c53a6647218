#pragma once

#include <cstdint>

namespace ballast {

/// Observations outside the range of an estimator, which it moved to the nearest end of that range.
struct ClampedCounts {
  std::int64_t below = 0;
  std::int64_t above = 0;

  ClampedCounts& operator+=(const ClampedCounts& other) {
    below += other.below;
    above += other.above;
    return *this;
  }
  friend bool operator==(const ClampedCounts&, const ClampedCounts&) = default;
};

}  // namespace ballast
