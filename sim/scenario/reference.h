#pragma once

#include <string>

namespace ballast::sim {

/// The reference of all fields of scenario files, in Markdown, made from the registry.
std::string field_reference();

}  // namespace ballast::sim
