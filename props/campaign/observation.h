#pragma once

#include <string>

#include "props/campaign/check_case.h"
#include "props/campaign/reproduction.h"

namespace ballast::props {

/// One case as a line of JSON, without its end, in the format of Hypothesis' observations ("PBT
/// Observations", schema_observations.json of its documentation): its viewers open files of these.
/// `run_start` and `seconds` are times, the only figures here that differ from run to run.
std::string observation_line(const Reproduction& which, const Case& input, const CaseResult& result,
                             double run_start, double seconds);

}  // namespace ballast::props
