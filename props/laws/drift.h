#pragma once

#include <vector>

#include "props/laws/law.h"

namespace ballast::props {

/// Family 10: how well quantile balancing balances over many steps of fresh, skewed and moving
/// traffic.
std::vector<Law> drift_laws();

}  // namespace ballast::props
