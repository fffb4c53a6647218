#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ballast::sim {

/// Text from outside (a file name, a line of a file) made fit for one line of a message or a
/// terminal: control characters and bytes that are not UTF-8 become `\xNN`, and text longer than
/// `max_bytes` ends in
/// "...".
std::string printable(std::string_view text, std::size_t max_bytes = 200);

/// Whether the text is UTF-8 throughout.
bool is_utf8(std::string_view text);

/// Columns the text takes on a terminal: its number of UTF-8 code points. (Wide characters count as
/// one.)
std::size_t display_width(std::string_view text);

/// A double as people read it: `digits` digits after the point, "-" for NaN, and never "-0.00".
std::string fixed(double value, int digits);

/// The words of the text in lines of at most `width` columns (a longer word stays whole), each
/// begun with `indent` blanks and closed with a line end.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

}  // namespace ballast::sim
