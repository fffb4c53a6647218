#include "props/command/select.h"

#include <fnmatch.h>

#include <algorithm>
#include <sstream>

#include "sim/text/nearest.h"
#include "sim/usage_error.h"

namespace ballast::props {

namespace {

std::vector<std::string> split(const std::vector<std::string>& lists) {
  std::vector<std::string> out;
  for (const std::string& list : lists) {
    std::istringstream stream(list);
    for (std::string pattern; std::getline(stream, pattern, ',');) out.push_back(pattern);
  }
  return out;
}

bool matches(const std::string& name, const std::string& pattern) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

void require_match(std::span<const std::string> names, const std::string& pattern, const Choice& choice) {
  if (std::ranges::any_of(names, [&](const std::string& name) { return matches(name, pattern); })) return;
  throw sim::UsageError("--" + choice.option + " " + pattern + ": no " + choice.noun + "." +
                        sim::did_you_mean(pattern, names) + " " + choice.listed_by);
}

}  // namespace

std::vector<std::size_t> select(std::span<const std::string> names, const std::vector<std::string>& lists,
                                const Choice& choice) {
  const auto patterns = split(lists);
  for (const std::string& pattern : patterns) require_match(names, pattern, choice);
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto match = [&](const std::string& pattern) { return matches(names[i], pattern); };
    if (patterns.empty() || std::ranges::any_of(patterns, match)) out.push_back(i);
  }
  return out;
}

}  // namespace ballast::props
