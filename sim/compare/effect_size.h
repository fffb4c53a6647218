#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace ballast::sim {

/// Values of one figure over seeds; a run without the value counts as larger than any number (it
/// never came to balance), and as equal to another without one.
using Sample = std::span<const std::optional<double>>;

/// Cliff's delta (Cliff, "Dominance statistics", Psychological Bulletin 114, 1993): the share of
/// pairs in which b is larger, less the share in which a is; in [-1, 1], 0 when neither tends to be
/// larger, 1 when every b is above every a. Nothing when a sample is empty. O(|a| |b|) time.
std::optional<double> cliffs_delta(Sample a, Sample b);

/// "negligible", "small", "medium" or "large", at |delta| below 0.147, 0.33, 0.474 and from there
/// (Romano et al., 2006).
std::string_view magnitude(double delta);

/// The median; nothing for no values, and when a missing one is in the middle.
std::optional<double> median(Sample values);

}  // namespace ballast::sim
