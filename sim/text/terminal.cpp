#include "sim/text/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

namespace ballast::sim {
namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

/// The process's own descriptor behind the stream, or -1.
int descriptor(const std::ostream& stream) {
  if (stream.rdbuf() == std::cout.rdbuf()) return STDOUT_FILENO;
  if (stream.rdbuf() == std::cerr.rdbuf()) return STDERR_FILENO;
  return -1;
}

std::string_view escape_sequence(Tone tone) {
  switch (tone) {
    case Tone::plain:
      return "";
    case Tone::strong:
      return "\x1b[1m";
    case Tone::faint:
      return "\x1b[2m";
    case Tone::good:
      return "\x1b[32m";
    case Tone::warning:
      return "\x1b[33m";
    case Tone::bad:
      return "\x1b[31m";
  }
  return "";
}

}  // namespace

bool is_terminal(const std::ostream& stream) {
  return isatty(descriptor(stream)) == 1;
}

bool may_colour(const std::ostream& stream) {
  return may_redraw(stream) && !is_set("NO_COLOR");
}

bool may_redraw(const std::ostream& stream) {
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  return is_terminal(stream) && !dumb;
}

std::size_t terminal_width(const std::ostream& stream) {
  winsize size = {};
  const bool known = ioctl(descriptor(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

std::string toned(std::string_view text, Tone tone, bool colour) {
  if (!colour || tone == Tone::plain) return std::string(text);
  return std::string(escape_sequence(tone)) + std::string(text) + "\x1b[0m";
}

}  // namespace ballast::sim
