#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <fstream>
#include <string>
#include <vector>

namespace ballast::sim {

struct Line {
  std::string text;         ///< without its end, "\n" or "\r\n"
  std::int64_t number = 0;  ///< from 1
  bool ended = true;        ///< false for a last line without a line end
};

/// Whether there is nothing but white space.
bool is_blank(const std::string& text);

/// A text file, or a pipe, line by line. Holds one block and one line, whatever the file's size. A
/// byte order mark at the front is not part of the first line.
class LineReader {
 public:
  static constexpr std::size_t max_line_bytes = std::size_t{64} << 20;

  /// Throws InputError when the file cannot be opened or is a directory.
  explicit LineReader(const std::string& path);

  /// The next line, or false at the end. Throws InputError when reading fails, and for a line
  /// longer than `max_line_bytes`.
  bool next(Line& line);

  /// The next `count` lines (fewer at the end of the file), which `next` will give again. Nothing
  /// else may have been peeked and not yet read.
  std::vector<Line> peek(std::size_t count);

  const std::string& path() const { return path_; }

 private:
  bool read(Line& line);
  bool refill();

  std::string path_;
  std::ifstream file_;
  std::vector<char> block_;
  std::size_t begin_ = 0;  ///< unread part of the block
  std::size_t end_ = 0;
  std::int64_t number_ = 0;
  std::deque<Line> peeked_;
};

}  // namespace ballast::sim
