#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ballast::sim {

/// Text from outside as text of HTML or XML, in an element or in an attribute between quotes:
/// markup is escaped, control characters and bytes that are not UTF-8 become `\xNN`, and text
/// longer than `max_bytes` ends in "...".
std::string escaped(std::string_view text, std::size_t max_bytes = 200);

/// The same for text of several lines, at any length: line ends stay.
std::string escaped_lines(std::string_view text);

/// `<NAME>content</NAME>`; `opening` is the name and, after a blank, its attributes. The content is
/// markup and stands as it is.
std::string element(std::string_view opening, std::string_view content);

/// A table that scrolls where it is too wide; headers and `rows` are markup.
std::string table(const std::vector<std::string>& headers, const std::string& rows);

}  // namespace ballast::sim
