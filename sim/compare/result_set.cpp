#include "sim/compare/result_set.h"

#include <algorithm>
#include <filesystem>

#include "sim/input_error.h"
#include "sim/output/result_files.h"
#include "sim/read_file.h"
#include "sim/scenario/json_text.h"
#include "sim/sweep/columns.h"
#include "sim/sweep/sweep_directory.h"

namespace ballast::sim {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_bytes = std::size_t{4} << 30;

[[noreturn]] void refuse(const std::string& where, const std::string& why) {
  throw InputError({.what = "cannot compare the results",
                    .where = where,
                    .why = why,
                    .right = "name a directory that 'ballast sweep --out' or 'ballast run --out' "
                             "wrote"});
}

std::string text_of(const fs::path& file) {
  return read_file(file.string(), "cannot read the results", most_bytes);
}

std::optional<double> number(const Json& value) {
  std::optional<double> figure;
  read_figure(value, figure);
  return figure;
}

/// Whether a run without the value says nothing.
bool is_unknown(const std::string& column, const std::optional<double>& value) {
  const auto known = find_column(column);
  return !value && known && run_columns()[*known].unknown_when_absent;
}

void add_line(ResultSet& set, std::map<std::size_t, std::size_t>& places, const Json& line) {
  const std::size_t point = line.at("point").get<std::size_t>();
  const auto [place, is_new] = places.emplace(point, set.points.size());
  if (is_new) set.points.push_back({.axes = line.at("axes"), .figures = {}});
  for (const std::string& column : set.columns) {
    const auto value = number(line.at(column));
    auto& values = set.points[place->second].figures[column];
    if (!is_unknown(column, value)) values.push_back(value);
  }
}

/// The last line of a run counts; a line that was cut off, and failed runs, do not.
std::map<std::size_t, Json> last_lines(const std::string& text) {
  std::map<std::size_t, Json> lines;
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    Json line = Json::parse(text.substr(begin, end - begin), nullptr, /*allow_exceptions=*/false);
    if (!line.is_object()) break;
    lines.insert_or_assign(line.at("run").get<std::size_t>(), std::move(line));
  }
  std::erase_if(lines, [](const auto& entry) { return entry.second.contains("error"); });
  return lines;
}

ResultSet load_sweep_results(const fs::path& directory) {
  const Json sweep =
      parse_json(text_of(directory / sweep_file_name), (directory / sweep_file_name).string());
  ResultSet set{.directory = directory.string(),
                .name = sweep.at("name").get<std::string>(),
                .columns = sweep.at("columns").get<std::vector<std::string>>(),
                .points = {}};
  std::map<std::size_t, std::size_t> places;
  for (const auto& [run, line] : last_lines(text_of(directory / results_file_name))) {
    add_line(set, places, line);
  }
  return set;
}

ResultPoint point_of_run(const Json& summary, Json axes) {
  ResultPoint point{.axes = std::move(axes), .figures = {}};
  for (const auto& [metric, value] : summary.at("final").items()) {
    point.figures[metric].push_back(number(value));
  }
  return point;
}

ResultSet load_run_results(const fs::path& directory) {
  const Json summary = parse_json(text_of(directory / result_files::summary),
                                  (directory / result_files::summary).string());
  ResultSet set{.directory = directory.string(),
                .name = summary.at("name").get<std::string>(),
                .columns = {},
                .points = {}};
  if (summary.contains("variants")) {
    for (const Json& variant : summary.at("variants")) {
      set.points.push_back(point_of_run(variant, {{"variant", variant.at("name")}}));
    }
  } else {
    set.points.push_back(point_of_run(summary, Json::object()));
  }
  for (const ResultPoint& point : set.points) {
    for (const auto& [metric, values] : point.figures) {
      if (std::ranges::find(set.columns, metric) == set.columns.end())
        set.columns.push_back(metric);
    }
  }
  return set;
}

}  // namespace

ResultSet load_results(const std::string& directory) {
  if (!fs::is_directory(directory)) refuse(directory, "this is no directory");
  try {
    if (fs::exists(fs::path(directory) / sweep_file_name)) return load_sweep_results(directory);
    if (fs::exists(fs::path(directory) / result_files::summary)) return load_run_results(directory);
  } catch (const Json::exception& error) {
    refuse(directory, std::string("a file in it is not as it was written (") + error.what() + ")");
  }
  refuse(directory, "it holds neither sweep.json nor summary.json");
}

}  // namespace ballast::sim
