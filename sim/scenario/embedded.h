#pragma once

#include <string_view>

namespace ballast::sim {

/// The text of scenarios/quickstart.json, which the command carries in itself.
std::string_view quickstart_text();

}  // namespace ballast::sim
