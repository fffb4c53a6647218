#include "sim/command/compare.h"

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/command/options.h"
#include "sim/command/scenario_options.h"
#include "sim/compare/comparison.h"
#include "sim/compare/effect_size.h"
#include "sim/input_error.h"
#include "sim/sweep/columns.h"
#include "sim/sweep/summary.h"
#include "sim/text/nearest.h"
#include "sim/text/numbers.h"
#include "sim/text/printable.h"
#include "sim/text/table.h"
#include "sim/usage_error.h"

namespace ballast::sim {

namespace po = boost::program_options;

namespace {

constexpr std::size_t page_width = 80;

constexpr const char* introduction = R"(Usage: ballast compare [OPTION...] A B

Sets two result sets side by side: directories that 'ballast sweep --out' or
'ballast run --out' wrote. Points are matched by the values of their axes, runs
by the names of their variants.

)";

constexpr const char* explanation = R"(
difference: median over seeds in B less that in A. delta: Cliff's delta over the
seeds, the share of pairs in which B is larger less that in which A is, from -1
to 1; a run that has no value, because it never came to balance, counts as
larger than any. Of runs the metrics of the last step are compared.

Exit codes: 0 compared; 2 there is nothing in common to compare; 3 usage; 4 no
such results; 70 internal error.

Examples:
  ballast sweep my.sweep.json --out a
  ballast sweep my.sweep.json --set balancer.gain=0.5 --out b
  ballast compare a b --column steps_to_balance
  ballast compare a b --json | jq .columns
)";

po::options_description shown_options() {
  po::options_description shown("Options");
  shown.add_options()("column", po::value<std::string>()->value_name("COLUMN"),
                      "the figure to show point by point; default: the first")(
      "top", po::value<std::int64_t>()->value_name("N"),
      "points to show, largest differences first; default: 20; 0: all")(
      "json", "print everything as JSON")("help", "print this text");
  return shown;
}

/// Null also for a difference from what never came.
Json or_null(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

Json figures_json(const FigureComparison& figures) {
  Json json = {{"a", figure_json(figures.a)},
               {"b", figure_json(figures.b)},
               {"difference", or_null(figures.difference)},
               {"delta", or_null(figures.delta)}};
  json["magnitude"] = figures.delta ? Json(magnitude(*figures.delta)) : Json(nullptr);
  return json;
}

Json comparison_json(const ResultSet& a, const ResultSet& b, const Comparison& both) {
  Json json = {{"a", {{"directory", a.directory}, {"name", a.name}, {"only", both.only_a}}},
               {"b", {{"directory", b.directory}, {"name", b.name}, {"only", both.only_b}}},
               {"columns", Json::array()},
               {"points", Json::array()}};
  for (const ColumnComparison& column : both.columns) {
    json["columns"].push_back({{"column", column.column},
                               {"lower", column.lower},
                               {"equal", column.equal},
                               {"higher", column.higher},
                               {"median_difference", or_null(column.median_difference)},
                               {"mean_delta", or_null(column.mean_delta)}});
  }
  for (const PointComparison& point : both.points) {
    Json figures = Json::object();
    for (std::size_t c = 0; c < both.columns.size(); ++c)
      figures[both.columns[c].column] = figures_json(point.figures[c]);
    json["points"].push_back({{"axes", point.axes}, {"columns", std::move(figures)}});
  }
  return json;
}

std::string figure(const std::optional<double>& value) {
  if (!value) return "-";
  return std::isinf(*value) ? "none" : significant(*value, 4);
}

std::string difference(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? significant(*value, 4) : "-";
}

void write_columns(const Comparison& both, std::ostream& out) {
  std::vector<Row> rows;
  for (const ColumnComparison& column : both.columns) {
    rows.push_back({column.column, difference(column.median_difference),
                    difference(column.mean_delta), std::to_string(column.lower),
                    std::to_string(column.equal), std::to_string(column.higher)});
  }
  Table({{"column", Align::left}, {"difference"}, {"delta"}, {"lower"}, {"equal"}, {"higher"}},
        may_colour(out))
      .write(out, rows, page_width);
}

/// Points by the size of their difference; those without one first, for they are the largest.
std::vector<const PointComparison*> by_difference(const Comparison& both, std::size_t column) {
  std::vector<const PointComparison*> points;
  for (const PointComparison& point : both.points) points.push_back(&point);
  const auto size = [&](const PointComparison* point) {
    const FigureComparison& figures = point->figures[column];
    if (figures.difference) return std::abs(*figures.difference);
    return figures.a || figures.b ? HUGE_VAL : -1.0;
  };
  std::ranges::stable_sort(points, std::ranges::greater(), size);
  return points;
}

void write_points(const Comparison& both, std::size_t column, std::size_t top, std::ostream& out) {
  std::vector<Column> columns;
  for (const auto& [axis, label] : both.points.front().axes.items())
    columns.push_back({printable(axis.substr(axis.rfind('.') + 1), 40), Align::left});
  for (const char* header : {"A", "B", "difference", "delta"}) columns.push_back({header});
  columns.push_back({"effect", Align::left});
  const auto points = by_difference(both, column);
  const std::size_t shown = top == 0 ? points.size() : std::min(top, points.size());
  std::vector<Row> rows;
  for (std::size_t i = 0; i < shown; ++i) {
    const FigureComparison& figures = points[i]->figures[column];
    Row row;
    for (const auto& [axis, label] : points[i]->axes.items())
      row.push_back(printable(label_text(label), 40));
    row.insert(row.end(), {figure(figures.a), figure(figures.b), difference(figures.difference),
                           difference(figures.delta)});
    row.push_back(figures.delta ? std::string(magnitude(*figures.delta)) : "");
    rows.push_back(std::move(row));
  }
  out << '\n' << both.columns[column].column << ", largest differences first:\n";
  Table(columns, may_colour(out)).write(out, rows, page_width);
  if (shown < points.size())
    out << "and " << counted(points.size() - shown, "point") << " more; --top 0 shows all\n";
}

void write_tables(const ResultSet& a, const ResultSet& b, const Comparison& both,
                  std::size_t column, std::size_t top, std::ostream& out) {
  const auto heading = [](const char* letter, const ResultSet& set) {
    return std::string(letter) + ": " + printable(set.name) + " (" + printable(set.directory) +
           ")\n";
  };
  out << heading("A", a) << heading("B", b) << counted(both.points.size(), "point")
      << " in common, " << both.only_a << " only in A, " << both.only_b << " only in B\n\n";
  write_columns(both, out);
  write_points(both, column, top, out);
}

std::size_t chosen_column(const po::variables_map& given, const Comparison& both) {
  if (!given.contains("column")) return 0;
  const auto& name = given["column"].as<std::string>();
  std::vector<std::string> names;
  for (const ColumnComparison& column : both.columns) names.push_back(column.column);
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  throw UsageError("--column " + name + ": the results have no such column." +
                   did_you_mean(name, names));
}

}  // namespace

ExitCode compare(Arguments arguments, std::ostream& out, std::ostream& err) {
  const auto given = parse_options(with_words(shown_options(), "results"), arguments);
  if (given.contains("help")) {
    out << introduction << shown_options() << explanation;
    return ExitCode::pass;
  }
  const auto directories = given.contains("results")
                               ? given["results"].as<std::vector<std::string>>()
                               : std::vector<std::string>();
  if (directories.size() != 2) {
    throw UsageError("compare needs two directories of results, A and B, and " +
                     std::to_string(directories.size()) + " are given");
  }
  const bool all = given.contains("top") && given["top"].as<std::int64_t>() == 0;
  const std::size_t top = all ? 0 : count_option(given, "top", 1'000'000, 20);
  const ResultSet a = load_results(directories[0]), b = load_results(directories[1]);
  const Comparison both = compare_results(a, b);
  if (given.contains("json")) out << comparison_json(a, b, both).dump(2) << '\n';
  if (both.points.empty() || both.columns.empty()) {
    err << "ballast: " << printable(directories[0]) << " and " << printable(directories[1])
        << " have no " << (both.columns.empty() ? "column" : "point") << " in common\n";
    return ExitCode::unknown;
  }
  const std::size_t column = chosen_column(given, both);
  if (!given.contains("json")) write_tables(a, b, both, column, top, out);
  return ExitCode::pass;
}

}  // namespace ballast::sim
