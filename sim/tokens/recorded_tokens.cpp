#include "sim/tokens/recorded_tokens.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>
#include <string_view>

#include "sim/input_error.h"
#include "sim/read_file.h"
#include "sim/read_once.h"
#include "sim/recordings/load_csv.h"
#include "sim/text/printable.h"
#include "sim/tokens/sequence_stream.h"

namespace ballast::sim {
namespace {

constexpr std::size_t max_file_bytes = std::size_t{1} << 30;
constexpr std::size_t least_tokens = 10;  ///< so that the last tenth is one
constexpr const char* what = "cannot take tokens from the recording";

[[noreturn]] void refuse(const std::string& where, const std::string& why) {
  throw InputError({.what = what,
                    .where = where,
                    .why = why,
                    .right = "give token ids, set apart by white space or commas, or a CSV with "
                             "columns token_id and count"});
}

std::int64_t whole_number(std::string_view text, const std::string& where) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    refuse(where, "'" + printable(std::string(text), 40) + "' is no whole number from 0");
  }
  return value;
}

/// Ids in ascending order, and the place of each among them.
std::map<std::int64_t, std::int32_t> numbered(std::vector<std::int64_t>& ids) {
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  std::map<std::int64_t, std::int32_t> numbers;
  for (const std::int64_t id : ids) numbers.emplace(id, static_cast<std::int32_t>(numbers.size()));
  return numbers;
}

RecordedTokens read_stream(std::string_view text, const std::string& file) {
  constexpr std::string_view between = " \t\r\n,[]";
  std::vector<std::int64_t> stream;
  std::size_t line = 1;
  for (std::size_t at = 0; at < text.size();) {
    if (between.find(text[at]) != std::string_view::npos) {
      line += text[at++] == '\n' ? 1 : 0;
      continue;
    }
    const std::size_t end = std::min(text.find_first_of(between, at), text.size());
    stream.push_back(whole_number(text.substr(at, end - at), file + ":" + std::to_string(line)));
    at = end;
  }
  RecordedTokens tokens{.ids = stream, .stream = {}, .counts = {}};
  const auto numbers = numbered(tokens.ids);
  for (const std::int64_t id : stream) tokens.stream.push_back(numbers.at(id));
  return tokens;
}

int column(const std::vector<std::string>& header, std::string_view name) {
  const auto found = std::ranges::find(header, name);
  return found == header.end() ? -1 : static_cast<int>(found - header.begin());
}

RecordedTokens read_table(const std::string& text, const std::string& file,
                          const std::vector<std::string>& header) {
  const int id = column(header, "token_id");
  const int count = std::max(column(header, "count"), column(header, "count_topk"));
  if (count < 0) refuse(file + ":1", "the table has no column count");
  std::map<std::int64_t, double> counts;
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  for (std::size_t number = 2; std::getline(lines, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (line.ends_with('\r')) line.pop_back();
    const auto fields = split_csv(line);
    const std::string where = file + ":" + std::to_string(number);
    if (fields.size() != header.size()) {
      refuse(where, std::to_string(fields.size()) + " fields where the header has " +
                        std::to_string(header.size()));
    }
    const auto field = [&](int at) { return fields[static_cast<std::size_t>(at)]; };
    counts[whole_number(field(id), where)] +=
        static_cast<double>(whole_number(field(count), where));
  }
  RecordedTokens tokens;
  for (const auto& [token, total] : counts) {
    if (total == 0.0) continue;
    tokens.ids.push_back(token);
    tokens.counts.push_back(total);
  }
  return tokens;
}

RecordedTokens read_tokens(const std::string& file) {
  const std::string text = read_file(file, what, max_file_bytes);
  std::string first = text.substr(0, text.find('\n'));
  if (first.ends_with('\r')) first.pop_back();
  const auto header = split_csv(first);
  RecordedTokens tokens =
      column(header, "token_id") >= 0 ? read_table(text, file, header) : read_stream(text, file);
  if (tokens.ids.empty()) refuse(file, "it holds no token");
  return tokens;
}

}  // namespace

const RecordedTokens& recorded_tokens(const std::string& file) {
  static ReadOnce<std::string, RecordedTokens> read;
  return read.get(file, [&] { return read_tokens(file); });
}

RecordedTokenSource::RecordedTokenSource(const std::string& file, std::size_t length,
                                         std::uint64_t seed)
    : tokens_(recorded_tokens(file)),
      by_count_(tokens_.counts.empty() ? std::vector<double>{1.0} : tokens_.counts),
      length_(length),
      seed_(seed) {
  if (tokens_.counts.empty() && tokens_.stream.size() < least_tokens) {
    refuse(file, "it holds " + std::to_string(tokens_.stream.size()) + " tokens, and " +
                     std::to_string(least_tokens) + " are needed");
  }
}

Sequence RecordedTokenSource::sequence(const SequenceKey& key) const {
  Stream stream = sequence_stream(seed_, key).child("recorded");
  Sequence out{.tokens = std::vector<std::int32_t>(length_ + 1), .valid = length_};
  if (!tokens_.counts.empty()) {
    for (std::int32_t& token : out.tokens) token = static_cast<std::int32_t>(by_count_(stream));
    return out;
  }
  const std::size_t all = tokens_.stream.size(), kept = all / 10;
  const bool training = key.split == Split::training;
  const std::size_t begin = training ? 0 : all - kept, size = training ? all - kept : kept;
  const std::size_t start = uniform_index(stream, size);
  for (std::size_t i = 0; i <= length_; ++i) {
    out.tokens[i] = tokens_.stream[begin + (start + i) % size];
  }
  return out;
}

}  // namespace ballast::sim
