#pragma once

#include <cstddef>
#include <string>

namespace ballast::sim {

/// The bytes of a file. Throws InputError when there is none, when it is a directory, cannot be
/// read, or is larger than `max_bytes`; `what` says what it was wanted for: "cannot read the
/// scenario".
std::string read_file(const std::string& path, const std::string& what, std::size_t max_bytes);

}  // namespace ballast::sim
