#pragma once

#include "props/laws/law.h"

namespace ballast::props {

/// A law that every subject breaks on a known share of cases: whoever reports of laws has to report
/// of it. It is in no list of laws.
///
/// Its cases are one training forward of small shape; it is broken when the first logit, one of
/// 0, 1/8, ..., 127/8, is at least 12. So it is broken by one case in four, and its smallest case
/// is one token, one expert and the logit 12.
const Law& canary();

inline constexpr double canary_share = 0.25;  ///< of cases that break it
inline constexpr float canary_limit = 12.0f;  ///< the least logit that does

}  // namespace ballast::props
