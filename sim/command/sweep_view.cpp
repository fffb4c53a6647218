#include "sim/command/sweep_view.h"

#include <algorithm>
#include <cmath>
#include <ostream>

#include "sim/sweep/columns.h"
#include "sim/sweep/summary.h"
#include "sim/text/numbers.h"
#include "sim/text/printable.h"
#include "sim/text/table.h"

namespace ballast::sim {
namespace {

constexpr std::size_t page_width = 80;

std::string number(const std::optional<double>& value, int digits = 4) {
  if (!value) return "-";
  return std::isinf(*value) ? "none" : significant(*value, digits);
}

std::string with_spread(const Spread& spread) {
  const auto half = spread.half_range();
  return number(spread.median) + (spread.median && half ? " ±" + number(half, 2) : "");
}

bool expects_anything(const Sweep& sweep) {
  return !sweep.base.expect.empty();
}

/// "optimizer.learning_rate" is enough of "training.optimizer.learning_rate".
std::string short_name(const std::string& axis) {
  const auto dot = axis.rfind('.');
  return printable(dot == std::string::npos ? axis : axis.substr(dot + 1), 40);
}

/// The onset of a collapse stands beside its kind.
bool shown_apart(std::size_t column, std::size_t rank_column) {
  return column != rank_column && run_columns()[column].name != "collapse_onset";
}

std::vector<Column> point_columns(const Sweep& sweep, std::size_t rank_column) {
  std::vector<Column> columns;
  for (const std::string& axis : sweep.axes) columns.push_back({short_name(axis), Align::left});
  columns.push_back({run_columns()[rank_column].header, Align::right});
  for (std::size_t c = 0; c < run_columns().size(); ++c) {
    if (shown_apart(c, rank_column)) columns.push_back({run_columns()[c].header, Align::right});
  }
  columns.push_back({"collapse", Align::left});
  columns.push_back({expects_anything(sweep) ? "verdict" : "", Align::left});
  return columns;
}

Cell outcome_of(const PointSummary& point) {
  if (point.errors > 0) return Cell(counted(point.errors, "error"), Tone::bad);
  if (!point.verdict) return Cell("");
  const Tone tone = *point.verdict == Verdict::pass   ? Tone::good
                    : *point.verdict == Verdict::fail ? Tone::bad
                                                      : Tone::warning;
  return Cell(std::string(word(*point.verdict)), tone);
}

/// Kinds in a narrow table.
std::string short_kind(const std::string& kind) {
  return kind == "dead_experts" ? "dead" : kind;
}

/// "dead @12" with the median of its onsets, or "dead 2/3 @12" when not all runs have it.
Cell collapse_of(const PointSummary& point) {
  if (point.runs == 0) return Cell("");
  const std::string kind = point.collapse_kind();
  const std::size_t count = point.collapse_kinds.at(kind);
  std::string text = short_kind(kind);
  if (count != point.runs) text += " " + std::to_string(count) + "/" + std::to_string(point.runs);
  const auto onset = point.columns[find_column("collapse_onset").value()].median;
  if (onset && std::isfinite(*onset)) text += " @" + significant(*onset, 4);
  return Cell(text);
}

Row point_row(const PointSummary& point, const Sweep& sweep, std::size_t rank_column) {
  Row row;
  for (const std::string& axis : sweep.axes) {
    row.push_back(printable(label_text(sweep.points[point.point].axes.at(axis)), 40));
  }
  const Spread& ranked = point.columns[rank_column];
  row.push_back(Cell(sweep.seeds > 1 ? with_spread(ranked) : number(ranked.median), Tone::strong));
  for (std::size_t c = 0; c < run_columns().size(); ++c) {
    if (shown_apart(c, rank_column)) row.push_back(number(point.columns[c].median));
  }
  row.push_back(collapse_of(point));
  row.push_back(outcome_of(point));
  return row;
}

void write_points(const Sweep& sweep, const std::vector<RunResult>& results,
                  std::size_t rank_column, std::size_t top, std::ostream& out) {
  std::vector<PointSummary> points = summarize(results, sweep);
  rank(points, rank_column);
  const std::size_t shown = top == 0 ? points.size() : std::min(top, points.size());
  std::vector<Row> rows;
  for (std::size_t i = 0; i < shown; ++i) rows.push_back(point_row(points[i], sweep, rank_column));
  Table(point_columns(sweep, rank_column), may_colour(out)).write(out, rows, page_width);
  if (shown < points.size()) {
    out << "and " << counted(points.size() - shown, "point") << " more; --top 0 shows all\n";
  }
}

void write_axes(const Sweep& sweep, const std::vector<RunResult>& results, std::ostream& out) {
  std::vector<Column> columns = {{"axis", Align::left}, {"value", Align::left}, {"runs"}};
  for (const RunColumn& column : run_columns()) columns.push_back({column.header, Align::right});
  std::vector<Row> rows;
  std::string last;
  for (const AxisSummary& axis : summarize_axes(results, sweep)) {
    Row row = {axis.axis == last ? "" : short_name(axis.axis),
               printable(label_text(axis.label), 40), std::to_string(axis.runs)};
    for (const Spread& spread : axis.columns) row.push_back(number(spread.median));
    rows.push_back(std::move(row));
    last = axis.axis;
  }
  if (rows.empty()) return;
  out << "\nOver all runs with this value (medians):\n";
  Table(columns, may_colour(out)).write(out, rows, page_width);
}

void write_legend(std::ostream& out) {
  for (const RunColumn& column : run_columns()) {
    out << wrapped(column.header + ": " + column.meaning, page_width, 0);
  }
  out << wrapped(
      "collapse: the kind of the first collapse, with the share of the runs that have it when "
      "others do not, and @ the median of its onset",
      page_width, 0);
}

}  // namespace

void write_sweep_tables(const Sweep& sweep, const std::vector<RunResult>& results,
                        std::size_t rank_column, std::size_t top, std::ostream& out) {
  const std::string over_seeds = sweep.seeds == 1
                                     ? ""
                                     : ", with half its range over seeds; figures are medians of " +
                                           counted(sweep.seeds, "seed");
  out << wrapped(printable(sweep.name, 200) + ": " + counted(sweep.points.size(), "point") +
                     ", best " + run_columns()[rank_column].name + " first" + over_seeds,
                 page_width, 0)
      << '\n';
  write_points(sweep, results, rank_column, top, out);
  write_axes(sweep, results, out);
  out << '\n';
  write_legend(out);
}

void write_sweep_points(const Sweep& sweep, std::ostream& out) {
  std::vector<Column> columns = {{"point"}};
  for (const std::string& axis : sweep.axes) columns.push_back({short_name(axis), Align::left});
  columns.push_back({"", Align::left});
  std::vector<Row> rows;
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    Row row = {std::to_string(i)};
    for (const std::string& axis : sweep.axes)
      row.push_back(printable(label_text(sweep.points[i].axes.at(axis)), 40));
    if (std::holds_alternative<Impossible>(sweep.scenarios[i])) {
      row.push_back(Cell("cannot be run", Tone::bad));
    }
    rows.push_back(std::move(row));
  }
  Table(columns, may_colour(out)).write(out, rows, page_width);
}

std::string in_words(const SweepPoint& point) {
  std::string text;
  for (const auto& [axis, label] : point.axes.items()) {
    text += (text.empty() ? "" : ", ") + axis + " " + label_text(label);
  }
  return printable(text, 400);
}

}  // namespace ballast::sim
