#include "sim/report/run_data.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/input_error.h"
#include "sim/output/result_files.h"
#include "sim/read_file.h"
#include "sim/scenario/json_text.h"
#include "sim/sweep/sweep_directory.h"

namespace ballast::sim {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_bytes = std::size_t{4} << 30;
constexpr const char* what = "cannot report the results";

[[noreturn]] void refuse(const std::string& where, const std::string& why) {
  throw InputError({.what = what,
                    .where = where,
                    .why = why,
                    .right = "name a directory as 'ballast run --out' wrote it"});
}

/// Calls `read`, and names the place in the error when the JSON is not as expected.
template <class Read>
auto at_place(const std::string& where, Read read) {
  try {
    return read();
  } catch (const Json::exception& error) {
    refuse(where, std::string("it is not as it was written (") + error.what() + ")");
  }
}

std::string text_of(const fs::path& file) {
  return read_file(file.string(), what, most_bytes);
}

/// Calls `take` with the JSON object of each line.
template <class Take>
void for_each_line(const fs::path& file, Take take) {
  const std::string text = text_of(file);
  std::size_t number = 1;
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const std::string where = file.string() + ":" + std::to_string(number);
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) refuse(where, "the line is cut off");
    at_place(where, [&] {
      const Json line = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                    text.begin() + static_cast<std::ptrdiff_t>(end));
      take(line, where);
    });
    begin = end + 1;
  }
}

StepFigures read_figures(const fs::path& file) {
  constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
  StepFigures all;
  for_each_line(file, [&](const Json& line, const std::string& where) {
    const auto step = static_cast<double>(line.at("step").get<std::int64_t>());
    if (!all.steps.empty() && step <= all.steps.back())
      refuse(where, "its step is not after that of the line before");
    all.steps.push_back(step);
    for (const auto& [name, value] : line.items()) {
      if (name == "step" || value.is_boolean()) continue;
      auto& values = all.figures[name];
      values.resize(all.steps.size(), nothing);
      if (!value.is_null()) values.back() = value.get<double>();
    }
  });
  for (auto& [name, values] : all.figures) values.resize(all.steps.size(), nothing);
  return all;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Numbers in names count as numbers: layers.2 comes before layers.10.
bool comes_before(const std::string& a, const std::string& b) {
  const auto key = [](const std::string& name) {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < name.size();) {
      std::size_t end = i + 1;
      if (is_digit(name[i])) {
        while (end < name.size() && is_digit(name[end])) ++end;
      }
      const std::size_t width = end - i;
      parts.push_back(width < 20 && is_digit(name[i])
                          ? std::string(20 - width, '0') + name.substr(i, width)
                          : name.substr(i, width));
      i = end;
    }
    return parts;
  };
  return key(a) < key(b);
}

/// Sums of all counts of a file stay integers that a double holds.
constexpr std::int64_t most_assignments = std::int64_t{1} << 53;

/// `left` is what may still be counted.
LayerLoads read_layer(const std::string& name, const Json& record, const std::string& where,
                      std::int64_t& left) {
  LayerLoads layer{.name = name, .counts = {}};
  const Json& counts = record.at("expert_load_counts");
  if (!counts.is_array() || counts.empty())
    refuse(where, "the load counts of '" + name + "' are no list of counts");
  for (const Json& count : counts) {
    if (!count.is_number_integer() || count.get<std::int64_t>() < 0)
      refuse(where, "a load count of '" + name + "' is no count");
    if (count.get<std::int64_t>() > left) refuse(where, "the load counts add up to more than 2^53");
    left -= count.get<std::int64_t>();
    layer.counts.push_back(count.get<std::int64_t>());
  }
  return layer;
}

bool same_layers(const LoadInterval& a, const LoadInterval& b) {
  return std::ranges::equal(a.layers, b.layers, [](const LayerLoads& x, const LayerLoads& y) {
    return x.name == y.name && x.counts.size() == y.counts.size();
  });
}

std::vector<LoadInterval> read_intervals(const fs::path& file) {
  std::vector<LoadInterval> intervals;
  std::int64_t left = most_assignments;
  for_each_line(file, [&](const Json& line, const std::string& where) {
    LoadInterval interval{.first_step = line.at("first_step").get<std::int64_t>(),
                          .last_step = line.at("last_step").get<std::int64_t>(),
                          .layers = {}};
    const Json& layers = line.at("layers");
    if (!layers.is_object() && !layers.is_null()) refuse(where, "its layers are no object");
    for (const auto& [name, record] : layers.items())
      interval.layers.push_back(read_layer(name, record, where, left));
    std::ranges::sort(interval.layers, comes_before, &LayerLoads::name);
    if (!intervals.empty() && !same_layers(intervals.front(), interval))
      refuse(where, "its layers are not those of the first line");
    intervals.push_back(std::move(interval));
  });
  return intervals;
}

/// Checks what the page takes for granted.
void check_summary(const Json& summary, const std::string& where) {
  at_place(where, [&] {
    for (const char* name : {"name", "verdict", "digest"})
      static_cast<void>(summary.at(name).get<std::string>());
    static_cast<void>(summary.at("steps").get<std::int64_t>());
    for (const auto& [name, value] : summary.at("final").items()) {
      if (!value.is_null()) static_cast<void>(value.get<double>());
    }
    for (const Json& expectation : summary.at("expectations"))
      static_cast<void>(expectation.at("verdict").get<std::string>());
    if (!summary.contains("collapse")) return;
    static_cast<void>(summary.at("collapse").at("verdict").get<std::string>());
    for (const Json& finding : summary.at("collapse").at("findings")) {
      static_cast<void>(finding.at("kind").get<std::string>());
      static_cast<void>(finding.at("onset").get<std::int64_t>());
      static_cast<void>(finding.at("layers").get<std::int64_t>());
    }
  });
}

Json read_summary(const fs::path& file) {
  Json summary = parse_json(text_of(file), file.string());
  check_summary(summary, file.string());
  return summary;
}

RunData read_run(const fs::path& folder, const std::string& prefix, Json summary) {
  RunData run;
  run.name = summary.at("name").get<std::string>();
  run.summary = std::move(summary);
  const auto present = [&](const char* name) {
    const bool there = fs::exists(folder / name);
    if (!there) run.missing.push_back(prefix + name);
    return there;
  };
  namespace files = result_files;
  if (present(files::metrics)) run.metrics = read_figures(folder / files::metrics);
  if (present(files::evaluations)) run.evaluations = read_figures(folder / files::evaluations);
  if (present(files::diagnostics)) run.intervals = read_intervals(folder / files::diagnostics);
  return run;
}

/// The folder of a variant lies below that of all.
void check_folder(const std::string& name, const std::string& where) {
  const fs::path folder(name);
  if (name.empty() || folder.is_absolute() ||
      std::ranges::find(folder, fs::path("..")) != folder.end())
    refuse(where, "a variant's name is no name of a folder");
}

}  // namespace

RunDirectory read_run_directory(const std::string& directory) {
  const fs::path root(directory);
  if (!fs::is_directory(root)) refuse(directory, "this is no directory");
  if (fs::exists(root / sweep_file_name)) {
    throw InputError({.what = what,
                      .where = directory,
                      .why = "it holds the results of a sweep",
                      .right = "'ballast compare' sets sweeps side by side; a report is made of "
                               "what 'ballast run --out' wrote"});
  }
  const fs::path summary_file = root / result_files::summary;
  if (!fs::exists(summary_file)) refuse(directory, "it holds no summary.json");
  RunDirectory all;
  all.summary = read_summary(summary_file);
  const fs::path scenario_file = root / result_files::scenario;
  if (fs::exists(scenario_file)) all.scenario = text_of(scenario_file);
  if (!all.summary.contains("variants")) {
    all.runs.push_back(read_run(root, "", all.summary));
    return all;
  }
  for (const Json& variant : all.summary.at("variants")) {
    check_summary(variant, summary_file.string());
    const auto name = variant.at("name").get<std::string>();
    check_folder(name, summary_file.string());
    all.runs.push_back(read_run(root / name, name + "/", variant));
  }
  return all;
}

}  // namespace ballast::sim
