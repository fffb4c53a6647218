#pragma once

namespace ballast::sim {

/// Tells the C library to keep memory that is free, and to take it from the system in large parts:
/// what is given back and taken again is paid for page by page, and small parts get small pages.
/// Once, at the beginning of a program; shows in its speed alone.
void keep_memory();

}  // namespace ballast::sim
