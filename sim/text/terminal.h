#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>

namespace ballast::sim {

/// Whether the stream is the process's stdout or stderr and that is a terminal. Any other stream is
/// not.
bool is_terminal(const std::ostream& stream);

/// Whether text on this stream may be coloured: it is a terminal, NO_COLOR is not set (or empty, as
/// no-color.org says), and TERM is not "dumb".
bool may_colour(const std::ostream& stream);

/// Whether a line of this stream can be drawn over: it is a terminal, and TERM is not "dumb".
bool may_redraw(const std::ostream& stream);

/// Columns of the terminal behind the stream; 80 where nothing says how many.
std::size_t terminal_width(const std::ostream& stream);

/// What a piece of text says about itself; plain text where colour is off.
enum class Tone { plain, strong, faint, good, warning, bad };

/// The text between the escape sequences of its tone, or as it is when `colour` is false.
std::string toned(std::string_view text, Tone tone, bool colour);

}  // namespace ballast::sim
