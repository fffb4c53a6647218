#pragma once

#include <string>
#include <string_view>

#include "sim/scenario/field_type.h"

namespace ballast::sim {

/// Parses one JSON value, stricter than usual: a key that is twice in an object is an error, and so
/// is nesting no scenario has. Throws InputError that names `origin` (a file), and line and column
/// of a mistake in the grammar or the JSON pointer of the repeated key.
Json parse_json(std::string_view text, std::string_view origin);

/// "file#/a/b" for a place in a document; the pointer is escaped as in RFC 6901.
std::string place(std::string_view origin, std::string_view pointer);
/// The pointer of a member of the object at `pointer`.
std::string pointer_to(std::string_view pointer, std::string_view key);
std::string pointer_to(std::string_view pointer, std::size_t index);

}  // namespace ballast::sim
