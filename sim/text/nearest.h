#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ballast::sim {

/// The least number of bytes to insert, delete or replace that turns `a` into `b` (Levenshtein
/// 1966). O(|a| |b|) time, O(|b|) memory.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The word of `words` nearest to a misspelt one by edit distance, the first of equals; nothing
/// when even that one is further away than a third of the longer word's length (at least 2): that
/// is no misspelling.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> words);

/// " Did you mean 'WORD'?" for the nearest word, or nothing: the end of an error line.
std::string did_you_mean(std::string_view word, std::span<const std::string> words);

}  // namespace ballast::sim
