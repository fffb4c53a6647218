#include "sim/recordings/read_recording.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/input_error.h"
#include "sim/recordings/json_document.h"
#include "sim/recordings/json_lines.h"
#include "sim/recordings/line_reader.h"
#include "sim/recordings/load_csv.h"
#include "sim/text/nearest.h"
#include "sim/text/printable.h"

namespace ballast::sim {
namespace {

using nlohmann::json;

/// Lines in which the format is looked for.
constexpr std::size_t head_lines = 100;
/// A recording that is one JSON value over several lines is read whole, up to this size.
constexpr std::size_t max_document_bytes = std::size_t{64} << 20;
constexpr const char* known_formats =
    "give routing rows as JSON lines (name their fields with --map), a CSV with columns expert and "
    "count, or a JSON "
    "object with selections or load";

[[noreturn]] void fail(const std::string& where, const std::string& why, const std::string& right) {
  throw InputError(
      {.what = "cannot read the recording", .where = where, .why = why, .right = right});
}

std::vector<std::string> keys(const json& object) {
  std::vector<std::string> names;
  for (const auto& item : object.items()) names.push_back(item.key());
  return names;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return printable(text, 120);
}

void refuse_pointer_file(const Line& first, const std::string& path) {
  if (!first.text.starts_with("version https://git-lfs.github.com/spec/")) return;
  fail(path + ":" + std::to_string(first.number), "this is a Git LFS pointer, not the data",
       "fetch it with 'git lfs pull'");
}

/// The first line that holds anything.
const Line* first_line(const std::vector<Line>& head) {
  const auto place =
      std::find_if(head.begin(), head.end(), [](const Line& line) { return !is_blank(line.text); });
  return place == head.end() ? nullptr : &*place;
}

/// Reads the whole file, of which nothing is read yet, as one JSON value.
json read_whole(LineReader& lines) {
  std::string text;
  for (Line line; lines.next(line);) {
    text += line.text + '\n';
    if (text.size() > max_document_bytes) {
      fail(lines.path(), "it is neither JSON lines nor one JSON value of up to 64 MiB",
           known_formats);
    }
  }
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte, text.size()));
    const auto line = std::max<std::ptrdiff_t>(1, std::count(text.begin(), end, '\n'));
    fail(lines.path() + ":" + std::to_string(line), "this is neither JSON lines nor one JSON value",
         known_formats);
  }
}

RecordedRouting read_unknown(LineReader& lines, const std::vector<Line>& head,
                             const ReadSettings& settings) {
  for (const Line& line : head) {
    if (const auto object = parse_object(line.text)) {
      fail(lines.path() + ":" + std::to_string(line.number),
           "no kind of recording has these fields: " + joined(keys(*object)), known_formats);
    }
  }
  const json document = read_whole(lines);
  if (document.is_object() && is_recording_document(document)) {
    return read_json_document(document, lines.path(), settings);
  }
  fail(lines.path(), "this JSON is no kind of recording", known_formats);
}

/// The first lines must hold the field that names the experts; else the name is wrong.
void check_schema(const std::vector<Line>& head, const RowSchema& schema, const std::string& path) {
  std::optional<json> last;
  for (const Line& line : head) {
    if (auto object = parse_object(line.text)) {
      if (find_field(*object, schema.experts) != nullptr) return;
      last = std::move(object);
    }
  }
  if (!last)
    fail(path, "its first lines hold no JSON object", "give JSON lines when --map is there");
  fail(path, "no row has the field '" + schema.experts + "' that --map names",
       "the fields are " + joined(keys(*last)) + "." + did_you_mean(schema.experts, keys(*last)));
}

RecordedRouting read_rows(LineReader& lines, const std::vector<Line>& head, const RowSchema& schema,
                          const char* format, const ReadSettings& settings) {
  RecordedRouting routing = read_json_lines(lines, head, schema, settings);
  routing.format = format;
  return routing;
}

RecordedRouting read_json(LineReader& lines, const std::vector<Line>& head,
                          const ReadSettings& settings) {
  for (const Line& line : head) {
    const auto object = parse_object(line.text);
    if (!object) continue;
    if (is_recording_document(*object)) {
      return read_json_document(read_whole(lines), lines.path(), settings);
    }
    if (const auto schema = known_schema(*object)) {
      return read_rows(
          lines, head, *schema,
          schema->experts == "topk_ids" ? "meta and route rows" : "rows of layer and experts",
          settings);
    }
  }
  return read_unknown(lines, head, settings);
}

}  // namespace

std::vector<RecordedRouting> read_recording(const std::string& path, const ReadSettings& settings) {
  LineReader lines(path);
  const std::vector<Line> head = lines.peek(head_lines);
  const Line* first = first_line(head);
  if (first == nullptr) {
    RecordedRouting nothing;
    nothing.format = "empty";
    nothing.notes.emplace_back("the file holds nothing");
    return {nothing};
  }
  refuse_pointer_file(*first, path);
  if (settings.schema) {
    check_schema(head, *settings.schema, path);
    return {read_rows(lines, head, *settings.schema, "rows by --map", settings)};
  }
  const char start = first->text[first->text.find_first_not_of(" \t\r")];
  if (start == '{' || start == '[') return {read_json(lines, head, settings)};
  const std::vector<std::string> columns = split_csv(first->text);
  if (is_load_header(columns)) return read_load_csv(lines, settings);
  if (columns.size() > 1) {
    fail(path + ":" + std::to_string(first->number),
         "no table of loads has these columns: " + joined(columns), known_formats);
  }
  return {read_json(lines, head, settings)};
}

}  // namespace ballast::sim
