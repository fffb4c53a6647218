#pragma once

#include <vector>

#include "props/laws/law.h"

namespace ballast::props {

/// Family 6: what collectors report and metrics say follows from the loads, by the definitions.
std::vector<Law> metrics_laws();

}  // namespace ballast::props
