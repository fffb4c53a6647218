#pragma once

#include <vector>

#include "props/laws/law.h"

namespace ballast::props {

/// Family 7: how balancers, and quantile balancing in particular, move the biases.
std::vector<Law> quantile_laws();

}  // namespace ballast::props
