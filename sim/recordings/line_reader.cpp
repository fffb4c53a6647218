#include "sim/recordings/line_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "sim/input_error.h"

namespace ballast::sim {
namespace {

constexpr std::size_t block_bytes = 1 << 16;
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

[[noreturn]] void fail(const std::string& where, const std::string& why, const std::string& right) {
  throw InputError(
      {.what = "cannot read the recording", .where = where, .why = why, .right = right});
}

}  // namespace

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\r") == std::string::npos;
}

LineReader::LineReader(const std::string& path) : path_(path), block_(block_bytes) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    fail(path, "it is a directory", "name the files in it");
  }
  errno = 0;
  file_.open(path, std::ios::binary);
  if (!file_)
    fail(path, std::generic_category().message(errno == 0 ? EIO : errno),
         "give a file that can be read");
}

bool LineReader::next(Line& line) {
  if (peeked_.empty()) return read(line);
  line = std::move(peeked_.front());
  peeked_.pop_front();
  return true;
}

std::vector<Line> LineReader::peek(std::size_t count) {
  for (Line line; peeked_.size() < count && read(line);) peeked_.push_back(line);
  return {peeked_.begin(), peeked_.end()};
}

bool LineReader::read(Line& line) {
  line.text.clear();
  line.ended = false;
  while (!line.ended && (begin_ < end_ || refill())) {
    const char* first = block_.data() + begin_;
    const auto* newline = static_cast<const char*>(std::memchr(first, '\n', end_ - begin_));
    line.ended = newline != nullptr;
    const std::size_t length =
        line.ended ? static_cast<std::size_t>(newline - first) : end_ - begin_;
    line.text.append(first, length);
    begin_ += length + (line.ended ? 1 : 0);
    if (line.text.size() > max_line_bytes) {
      fail(path_ + ":" + std::to_string(number_ + 1), "the line is longer than 64 MiB",
           "give one record a line");
    }
  }
  if (!line.ended && line.text.empty()) return false;
  line.number = ++number_;
  if (number_ == 1 && line.text.starts_with(byte_order_mark))
    line.text.erase(0, byte_order_mark.size());
  if (line.ended && line.text.ends_with('\r')) line.text.pop_back();
  return true;
}

bool LineReader::refill() {
  file_.read(block_.data(), static_cast<std::streamsize>(block_.size()));
  if (file_.bad())
    fail(path_, "reading failed after line " + std::to_string(number_),
         "give a file that can be read");
  begin_ = 0;
  end_ = static_cast<std::size_t>(file_.gcount());
  return end_ > 0;
}

}  // namespace ballast::sim
