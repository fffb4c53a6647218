#pragma once

#include <vector>

#include "props/laws/law.h"

namespace ballast::props {

/// Family 9: how balancing and counting meet accumulation, skipped steps, evaluation and several
/// layers.
std::vector<Law> interplay_laws();

}  // namespace ballast::props
