#pragma once

#include <string>

#include "sim/report/run_data.h"

namespace ballast::sim {

/// Where the tokens of a run went: heat maps of expert load over log intervals, sorted profiles,
/// and the dead, starved and most overloaded experts by number, as markup. Of many layers the most
/// uneven are shown and all in one map; many experts or intervals are drawn together; the text says
/// so. `runs`: how many such sections share the page, which bounds the size of each.
std::string load_section(const RunData& run, std::size_t runs);

}  // namespace ballast::sim
