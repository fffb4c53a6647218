#pragma once

#include <string_view>

namespace ballast {

/// The version of this library and its command; CMakeLists.txt reads it from here.
inline constexpr std::string_view version = "0.1.0";

}  // namespace ballast
