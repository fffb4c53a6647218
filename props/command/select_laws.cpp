#include "props/command/select_laws.h"

#include <fnmatch.h>

#include <algorithm>
#include <sstream>

#include "sim/usage_error.h"
#include "sim/text/nearest.h"

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

bool matches(const Law& law, const std::string& pattern) {
  return fnmatch(pattern.c_str(), law.id.c_str(), 0) == 0;
}

void require_match(std::span<const Law> laws, const std::string& pattern) {
  if (std::ranges::any_of(laws, [&](const Law& law) { return matches(law, pattern); })) return;
  std::vector<std::string> ids;
  for (const Law& law : laws) ids.push_back(law.id);
  throw sim::UsageError("--laws " + pattern + ": no law has such an id." + sim::did_you_mean(pattern, ids) +
                        " 'ballast laws' lists them; * stands for anything, as in 'selection.*'");
}

}  // namespace

std::vector<Law> select_laws(std::span<const Law> laws, const std::vector<std::string>& lists) {
  const auto patterns = split(lists);
  for (const std::string& pattern : patterns) require_match(laws, pattern);
  std::vector<Law> out;
  for (const Law& law : laws) {
    const auto match = [&](const std::string& pattern) { return matches(law, pattern); };
    if (patterns.empty() || std::ranges::any_of(patterns, match)) out.push_back(law);
  }
  return out;
}

}  // namespace ballast::props
