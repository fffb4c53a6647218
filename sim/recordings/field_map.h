#pragma once

#include <string>

#include "sim/recordings/routing_row.h"

namespace ballast::sim {

/// The schema in a text like "layer=l,experts=e,token=t": which field holds the layer, the experts,
/// the token index, the weights and the sequence ("sequence=dataset+problem" for two fields). A
/// field that begins with "/" is a JSON pointer. Throws std::invalid_argument, with one line, for
/// anything else.
RowSchema parse_field_map(const std::string& text);

}  // namespace ballast::sim
