#include "sim/sweep/run_result.h"

#include "sim/sweep/columns.h"

namespace ballast::sim {
namespace {

std::optional<Verdict> verdict_called(const Json& text) {
  for (const Verdict verdict : {Verdict::pass, Verdict::fail, Verdict::unknown}) {
    if (text == word(verdict)) return verdict;
  }
  return std::nullopt;
}

bool read_values(const Json& line, RunResult& result) {
  for (const RunColumn& column : run_columns()) {
    const auto value = line.find(column.name);
    if (value == line.end() || !read_figure(*value, result.values.emplace_back())) return false;
  }
  return true;
}

}  // namespace

RunResult result_of(std::size_t run, const Simulation& simulation) {
  RunResult result{.run = run,
                   .error = std::nullopt,
                   .expected = !simulation.scenario().expect.empty(),
                   .verdict = overall(judge(simulation)),
                   .digest = simulation.digest(),
                   .collapse_kind = std::string(collapse_kind(simulation.collapse())),
                   .values = {}};
  for (const RunColumn& column : run_columns()) result.values.push_back(column.measure(simulation));
  return result;
}

Json to_json(const RunResult& result, const Sweep& sweep) {
  const std::size_t point = sweep.point_of(result.run);
  Json line = {{"run", result.run},
               {"point", point},
               {"axes", sweep.points[point].axes},
               {"seed", sweep.seed_of(result.run)}};
  if (result.error) {
    line["error"] = *result.error;
    return line;
  }
  line["verdict"] = result.expected ? Json(word(result.verdict)) : Json(nullptr);
  line["digest"] = result.digest;
  line["collapse_kind"] = result.collapse_kind;
  for (std::size_t c = 0; c < run_columns().size(); ++c) {
    line[run_columns()[c].name] = figure_json(result.values[c]);
  }
  return line;
}

std::optional<RunResult> read_result(const Json& line, const Sweep& sweep) {
  const auto text = [&](const char* key) {
    const auto found = line.find(key);
    return found != line.end() && found->is_string();
  };
  if (!line.is_object() || !line.contains("run") || !line["run"].is_number_unsigned()) {
    return std::nullopt;
  }
  RunResult result{.run = line["run"].get<std::size_t>()};
  if (result.run >= sweep.runs()) return std::nullopt;
  if (text("error")) {
    result.error = line["error"].get<std::string>();
    return result;
  }
  if (!text("digest") || !text("collapse_kind") || !line.contains("verdict") ||
      !read_values(line, result)) {
    return std::nullopt;
  }
  result.digest = line["digest"].get<std::string>();
  result.collapse_kind = line["collapse_kind"].get<std::string>();
  result.expected = !line["verdict"].is_null();
  if (!result.expected) return result;
  const auto verdict = verdict_called(line["verdict"]);
  if (!verdict) return std::nullopt;
  result.verdict = *verdict;
  return result;
}

}  // namespace ballast::sim
