#include "sim/command/stats_report.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <ostream>

#include "core/metrics/moe_metrics.h"
#include "sim/text/printable.h"
#include "sim/text/sparkline.h"
#include "sim/text/table.h"

namespace ballast::sim {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t page_width = 80;

template <class Value>
ordered_json or_null(const std::optional<Value>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

/// The five metrics over the layers that have assignments.
Metrics metrics_of(const RecordedRouting& routing) {
  std::vector<std::vector<std::int64_t>> loads;
  for (const RecordedLayer& layer : routing.layers) loads.push_back(layer.counts);
  return moe_metrics(loads);
}

ordered_json layer_name(const LayerName& layer) {
  return std::visit([](const auto& value) { return ordered_json(value); }, layer);
}

ordered_json layer_json(const RecordedLayer& layer, const RecordedRouting& routing) {
  ordered_json json = {{"layer", layer_name(layer.layer)}, {"experts", routing.experts},
                       {"top_k", or_null(routing.top_k)},  {"tokens", or_null(layer.tokens)},
                       {"assignments", layer.assignments}, {"counts", layer.counts}};
  const auto figures = load_metrics(layer.counts);
  const auto put = [&](const char* key, double LoadMetrics::*figure) {
    json[key] = figures ? ordered_json((*figures).*figure) : ordered_json(nullptr);
  };
  put("frac_with_tokens", &LoadMetrics::frac_with_tokens);
  put("frac_oversubscribed", &LoadMetrics::frac_oversubscribed);
  put("max_violation", &LoadMetrics::max_violation);
  put("min_violation", &LoadMetrics::min_violation);
  put("max_over_mean", &LoadMetrics::max_over_mean);
  put("load_cv", &LoadMetrics::load_cv);
  put("gini", &LoadMetrics::gini);
  return json;
}

ordered_json metrics_json(const RecordedRouting& routing) {
  const Metrics metrics = metrics_of(routing);
  ordered_json json = ordered_json::object();
  for (const char* key : metric_key::moe) {
    const auto found = metrics.find(key);
    json[key] = found == metrics.end() ? ordered_json(nullptr) : ordered_json(found->second);
  }
  return json;
}

ordered_json problem_json(const Problem& problem) {
  return {{"kind", name(problem.kind)},
          {"count", problem.count},
          {"counted", problem.counted},
          {"lines", problem.lines},
          {"message", problem.message}};
}

ordered_json trace_json(const TraceReport& report) {
  const RecordedRouting& routing = report.routing;
  ordered_json layers = ordered_json::array();
  for (const RecordedLayer& layer : routing.layers) layers.push_back(layer_json(layer, routing));
  ordered_json problems = ordered_json::array();
  for (const Problem& problem : routing.problems) problems.push_back(problem_json(problem));
  return {{"file", report.file},
          {"trace", routing.trace.empty() ? ordered_json(nullptr) : ordered_json(routing.trace)},
          {"format", routing.format},
          {"experts", routing.experts},
          {"top_k", or_null(routing.top_k)},
          {"layers", layers},
          {"metrics", metrics_json(routing)},
          {"notes", routing.notes},
          {"problems", problems}};
}

std::string sorted_loads(const RecordedLayer& layer) {
  std::vector<std::int64_t> loads = layer.counts;
  std::sort(loads.begin(), loads.end(), std::greater<>());
  return sparkline(std::span<const std::int64_t>(loads));
}

Row layer_row(const RecordedLayer& layer) {
  const std::string tokens = layer.tokens ? std::to_string(*layer.tokens) : "-";
  const auto figures = load_metrics(layer.counts);
  if (!figures) return {printable(to_text(layer.layer), 60), tokens, "-", "-", "-", "-", "-", ""};
  const Tone dead = figures->dead_experts > 0 ? Tone::warning : Tone::plain;
  return {printable(to_text(layer.layer), 60),
          tokens,
          {fixed(figures->frac_with_tokens, 4), dead},
          fixed(figures->frac_oversubscribed, 4),
          fixed(figures->max_violation, 4),
          fixed(figures->min_violation, 4),
          fixed(figures->max_over_mean, 4),
          sorted_loads(layer)};
}

/// The five metrics, each under the column whose mean or maximum over layers it is.
std::vector<Row> summary_rows(const RecordedRouting& routing) {
  const Metrics metrics = metrics_of(routing);
  if (metrics.empty()) return {};
  const auto figure = [&](const char* key) {
    return Cell(fixed(metrics.at(key), 4), Tone::strong);
  };
  return {{"mean", "", figure(metric_key::frac_with_tokens_mean),
           figure(metric_key::frac_oversubscribed_mean), figure(metric_key::max_violation_mean),
           figure(metric_key::min_violation_mean)},
          {"max", "", "", "", figure(metric_key::max_violation_max)}};
}

std::string title(const TraceReport& report) {
  const RecordedRouting& routing = report.routing;
  std::string text = printable(report.file);
  if (!routing.trace.empty()) text += ", " + printable(routing.trace);
  text += ": " + routing.format;
  if (routing.experts > 0)
    text += ", " + counted_noun(static_cast<std::int64_t>(routing.experts), "expert");
  if (routing.top_k) text += ", top " + std::to_string(*routing.top_k);
  return text;
}

void write_table(const TraceReport& report, std::ostream& out) {
  const bool colour = may_colour(out);
  const RecordedRouting& routing = report.routing;
  out << wrapped(title(report), page_width, 0);
  if (!routing.layers.empty()) {
    Table table({{"layer", Align::left},
                 {"tokens"},
                 {"used"},
                 {"over"},
                 {"max viol"},
                 {"min viol"},
                 {"max/mean"},
                 {"sorted loads", Align::left, 16}},
                colour);
    std::vector<Row> rows;
    for (const RecordedLayer& layer : routing.layers) rows.push_back(layer_row(layer));
    for (Row& row : summary_rows(routing)) rows.push_back(std::move(row));
    table.write(out, rows, page_width);
  }
  for (const std::string& note : routing.notes)
    out << wrapped("note: " + printable(note, 1000), page_width, 2);
  for (const Problem& problem : routing.problems) {
    out << wrapped("problem: " + problem.message, page_width, 2);
  }
}

}  // namespace

void write_stats_json(const std::vector<TraceReport>& reports, std::ostream& out) {
  ordered_json files = ordered_json::array();
  for (const TraceReport& report : reports) files.push_back(trace_json(report));
  out << ordered_json{{"files", files}}.dump(2, ' ', false, ordered_json::error_handler_t::replace)
      << '\n';
}

void write_stats_tables(const std::vector<TraceReport>& reports, std::ostream& out) {
  bool is_first = true;
  for (const TraceReport& report : reports) {
    if (!std::exchange(is_first, false)) out << '\n';
    write_table(report, out);
  }
}

}  // namespace ballast::sim
