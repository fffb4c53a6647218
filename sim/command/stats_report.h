#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "sim/recordings/recorded_routing.h"

namespace ballast::sim {

/// One trace of one file, with the layers to report.
struct TraceReport {
  std::string file;
  RecordedRouting routing;
};

/// {"files": [...]}, one entry a trace: layers with counts and figures, the five metrics, problems.
/// What has no value, because nothing was assigned, is null.
void write_stats_json(const std::vector<TraceReport>& reports, std::ostream& out);

/// Tables for people, 80 columns wide.
void write_stats_tables(const std::vector<TraceReport>& reports, std::ostream& out);

}  // namespace ballast::sim
