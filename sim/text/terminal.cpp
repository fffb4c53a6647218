#include "sim/text/terminal.h"

#include <unistd.h>

#include <cstdlib>
#include <iostream>

namespace ballast::sim {
namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
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
  if (stream.rdbuf() == std::cout.rdbuf()) return isatty(STDOUT_FILENO) == 1;
  if (stream.rdbuf() == std::cerr.rdbuf()) return isatty(STDERR_FILENO) == 1;
  return false;
}

bool may_colour(const std::ostream& stream) {
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  return is_terminal(stream) && !is_set("NO_COLOR") && !dumb;
}

std::string toned(std::string_view text, Tone tone, bool colour) {
  if (!colour || tone == Tone::plain) return std::string(text);
  return std::string(escape_sequence(tone)) + std::string(text) + "\x1b[0m";
}

}  // namespace ballast::sim
