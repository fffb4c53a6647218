#pragma once

#include "sim/scenario/scenario.h"

namespace ballast::sim {

/// About how much a run computes, in multiply-adds: forward and backward of every token of every
/// step. An estimate to compare runs by, and to tell their time from that of a short one.
double estimate_work(const Scenario& scenario);

}  // namespace ballast::sim
