#include "sim/sweep/summary.h"

#include <algorithm>
#include <cmath>

#include "sim/sweep/columns.h"
#include "sim/text/numbers.h"

namespace ballast::sim {
namespace {

using Value = std::optional<double>;

/// Whether a is the better value of a column.
bool better(const Value& a, const Value& b, bool less_is_better) {
  if (!a || !b) return a.has_value() && !b.has_value();
  return less_is_better ? *a < *b : *a > *b;
}

/// a is the better one, or equal.
Value middle(const Value& a, const Value& b) {
  if (!a || !b) return std::nullopt;
  return *a == *b || std::isinf(*a) || std::isinf(*b) ? b : Value(0.5 * (*a + *b));
}

/// The spreads of every column over some of the results.
std::vector<Spread> spreads_of(const std::vector<const RunResult*>& results) {
  std::vector<Spread> spreads;
  for (std::size_t c = 0; c < run_columns().size(); ++c) {
    std::vector<Value> values;
    for (const RunResult* result : results) values.push_back(result->values[c]);
    spreads.push_back(spread_of(std::move(values), run_columns()[c].less_is_better));
  }
  return spreads;
}

/// As `overall` of expectations: fail if any failed, else unknown if any is.
Verdict worse(Verdict a, Verdict b) {
  if (a == Verdict::fail || b == Verdict::fail) return Verdict::fail;
  return a == Verdict::unknown || b == Verdict::unknown ? Verdict::unknown : Verdict::pass;
}

PointSummary summary_of(std::size_t point, std::span<const RunResult> results) {
  PointSummary summary{.point = point, .first_error = {}};
  std::vector<const RunResult*> finished;
  for (const RunResult& result : results) {
    if (result.error) {
      if (summary.errors++ == 0) summary.first_error = *result.error;
      continue;
    }
    finished.push_back(&result);
    ++summary.collapse_kinds[result.collapse_kind];
    if (!result.expected) continue;
    summary.verdict = summary.verdict ? worse(*summary.verdict, result.verdict) : result.verdict;
  }
  summary.runs = finished.size();
  summary.columns = spreads_of(finished);
  return summary;
}

Json columns_json(const std::vector<Spread>& columns) {
  Json json = Json::object();
  for (std::size_t c = 0; c < columns.size(); ++c) {
    json[run_columns()[c].name] = {{"median", figure_json(columns[c].median)},
                                   {"min", figure_json(columns[c].least)},
                                   {"max", figure_json(columns[c].most)},
                                   {"values", columns[c].values}};
  }
  return json;
}

Json point_json(const PointSummary& point, const Sweep& sweep) {
  Json json = {{"point", point.point},
               {"axes", sweep.points[point.point].axes},
               {"runs", point.runs},
               {"errors", point.errors}};
  if (point.errors > 0) json["error"] = point.first_error;
  json["verdict"] = point.verdict ? Json(word(*point.verdict)) : Json(nullptr);
  json["collapse_kinds"] = point.collapse_kinds;
  json["columns"] = columns_json(point.columns);
  return json;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) line += (i == 0 ? "" : ",") + csv_cell(cells[i]);
  return line + "\n";
}

std::vector<std::string> csv_header(const Sweep& sweep) {
  std::vector<std::string> cells = {"run", "point", "seed"};
  cells.insert(cells.end(), sweep.axes.begin(), sweep.axes.end());
  cells.insert(cells.end(), {"verdict", "error", "collapse_kind"});
  for (const RunColumn& column : run_columns()) cells.push_back(column.name);
  return cells;
}

std::vector<std::string> csv_row(const RunResult& result, const Sweep& sweep) {
  const std::size_t point = sweep.point_of(result.run);
  std::vector<std::string> cells = {std::to_string(result.run), std::to_string(point),
                                    std::to_string(sweep.seed_of(result.run))};
  for (const std::string& axis : sweep.axes) {
    cells.push_back(label_text(sweep.points[point].axes.at(axis)));
  }
  cells.push_back(result.expected ? std::string(word(result.verdict)) : "");
  cells.push_back(result.error.value_or(""));
  cells.push_back(result.collapse_kind);
  for (std::size_t c = 0; c < run_columns().size(); ++c) {
    const bool has_value = !result.error && result.values[c];
    cells.push_back(has_value ? label_text(figure_json(result.values[c])) : "");
  }
  return cells;
}

}  // namespace

std::optional<double> Spread::half_range() const {
  if (!least || !most || std::isinf(*least) || std::isinf(*most)) return std::nullopt;
  return 0.5 * (*most - *least);
}

Spread spread_of(std::vector<Value> values, bool less_is_better) {
  std::ranges::stable_sort(
      values, [&](const Value& a, const Value& b) { return better(a, b, less_is_better); });
  Spread spread;
  for (const Value& value : values) {
    if (!value) continue;
    ++spread.values;
    spread.least = spread.least ? std::min(*spread.least, *value) : *value;
    spread.most = spread.most ? std::max(*spread.most, *value) : *value;
  }
  if (!values.empty()) {
    spread.median = middle(values[(values.size() - 1) / 2], values[values.size() / 2]);
  }
  return spread;
}

std::string PointSummary::collapse_kind() const {
  std::string most = "none";
  std::size_t runs_with_it = 0;
  for (const auto& [kind, count] : collapse_kinds) {
    if (count > runs_with_it || (count == runs_with_it && most == "none")) {
      most = kind, runs_with_it = count;
    }
  }
  return most;
}

std::vector<PointSummary> summarize(const std::vector<RunResult>& results, const Sweep& sweep) {
  std::vector<PointSummary> points;
  for (std::size_t point = 0; point < sweep.points.size(); ++point) {
    points.push_back(
        summary_of(point, std::span(results).subspan(point * sweep.seeds, sweep.seeds)));
  }
  return points;
}

void rank(std::vector<PointSummary>& points, std::size_t column) {
  const bool less = run_columns()[column].less_is_better;
  std::ranges::stable_sort(points, [&](const PointSummary& a, const PointSummary& b) {
    return better(a.columns[column].median, b.columns[column].median, less);
  });
}

std::vector<AxisSummary> summarize_axes(const std::vector<RunResult>& results, const Sweep& sweep,
                                        std::size_t most_values) {
  std::vector<AxisSummary> all;
  for (const std::string& axis : sweep.axes) {
    std::vector<Json> labels;
    for (const SweepPoint& point : sweep.points) {
      const Json& label = point.axes.at(axis);
      if (std::ranges::find(labels, label) == labels.end()) labels.push_back(label);
      if (labels.size() > most_values) break;
    }
    if (labels.size() > most_values) continue;
    for (const Json& label : labels) {
      std::vector<const RunResult*> here;
      for (const RunResult& result : results) {
        const Json& own = sweep.points[sweep.point_of(result.run)].axes.at(axis);
        if (!result.error && own == label) here.push_back(&result);
      }
      all.push_back(
          {.axis = axis, .label = label, .runs = here.size(), .columns = spreads_of(here)});
    }
  }
  return all;
}

Json summary_json(const Sweep& sweep, const std::vector<RunResult>& results,
                  std::size_t rank_column) {
  std::vector<PointSummary> points = summarize(results, sweep);
  rank(points, rank_column);
  const auto errors = std::ranges::count_if(
      results, [](const RunResult& result) { return result.error.has_value(); });
  Json json = {{"name", sweep.name},      {"points_total", sweep.points.size()},
               {"seeds", sweep.seeds},    {"runs", results.size()},
               {"errors", errors},        {"ranked_by", run_columns()[rank_column].name},
               {"points", Json::array()}, {"axes", Json::array()}};
  for (const PointSummary& point : points) json["points"].push_back(point_json(point, sweep));
  for (const AxisSummary& axis : summarize_axes(results, sweep)) {
    json["axes"].push_back({{"axis", axis.axis},
                            {"value", axis.label},
                            {"runs", axis.runs},
                            {"columns", columns_json(axis.columns)}});
  }
  return json;
}

std::string results_csv(const std::vector<RunResult>& results, const Sweep& sweep) {
  std::string text = csv_line(csv_header(sweep));
  for (const RunResult& result : results) text += csv_line(csv_row(result, sweep));
  return text;
}

std::string label_text(const Json& label) {
  if (label.is_string()) return label.get<std::string>();
  return label.is_number_float() ? shortest(label.get<double>()) : label.dump();
}

}  // namespace ballast::sim
