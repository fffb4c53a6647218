#include "sim/text/nearest.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace ballast::sim {
namespace {

/// Two words this many edits apart or fewer may be a word and its misspelling.
std::size_t plausible_edits(std::string_view a, std::string_view b) {
  return std::max<std::size_t>(2, std::max(a.size(), b.size()) / 3);
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // One row of the dynamic program: distance of the prefix of `a` so far to every prefix of `b`.
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> words) {
  std::optional<std::string> best;
  std::size_t best_distance = 0;
  for (const std::string& candidate : words) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance > plausible_edits(word, candidate)) continue;
    if (best && distance >= best_distance) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> words) {
  const auto found = nearest(word, words);
  return found ? " Did you mean '" + *found + "'?" : "";
}

}  // namespace ballast::sim
