#pragma once

#include <string>

#include "sim/report/run_data.h"

namespace ballast::sim {

/// The results as one page of HTML that needs nothing else: no script, no network, no font. It is
/// also well-formed XML. The same results give the same bytes. Under 2 MB, but for scenarios of
/// dozens of variants; where something is left out for that the page says so.
std::string report_page(const RunDirectory& results);

}  // namespace ballast::sim
