#include "sim/report/page.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/output/result_files.h"
#include "sim/report/heat_map.h"
#include "sim/report/html.h"
#include "sim/report/line_chart.h"
#include "sim/report/load_section.h"
#include "sim/report/style.h"
#include "sim/text/numbers.h"

namespace ballast::sim {
namespace {

constexpr std::size_t most_load_sections = 16, most_events = 20;
constexpr std::size_t most_scenario_bytes = 100'000;

std::string text_of(const Json& json, const char* name) {
  return escaped(json.at(name).get<std::string>());
}

std::string badge(const std::string& verdict) {
  return element("span class=\"badge " + verdict + "\"", verdict);
}

std::string number(const Json& value) {
  if (!value.is_number()) return "–";
  const auto figure = value.get<double>();
  return element("span title=\"" + shortest(figure) + "\"", significant(figure, 5));
}

std::string section(const std::string& heading, const std::string& content) {
  return element("section", element("h2", heading) + "\n" + content) + "\n";
}

std::string head(const RunDirectory& results) {
  const Json& summary = results.summary;
  std::string missing;
  for (const RunData& run : results.runs) {
    for (const std::string& file : run.missing) missing += (missing.empty() ? "" : ", ") + file;
  }
  if (results.scenario.empty())
    missing += (missing.empty() ? "" : ", ") + std::string(result_files::scenario);
  std::string text =
      element("h1", text_of(summary, "name") + " " + badge(text_of(summary, "verdict")));
  text += element(
      "p",
      counted(results.runs.size(), results.runs.size() == 1 ? "run" : "variant") + ", " +
          counted(static_cast<std::uint64_t>(summary.at("steps").get<std::int64_t>()), "step") +
          ", digest " + element("code", text_of(summary, "digest")));
  if (!missing.empty())
    text += element("p class=\"missing\"", "Missing from the results: " + escaped(missing, 2000));
  return element("header", text) + "\n";
}

/// "≤ 5", "15 to 20", "collapsed".
std::string wanted(const Json& expectation) {
  if (expectation.contains("collapse")) return escaped(expectation.at("collapse").dump());
  std::string text;
  if (expectation.contains("at_least")) text += "≥ " + number(expectation.at("at_least"));
  if (expectation.contains("at_most"))
    text += (text.empty() ? "" : ", ") + std::string("≤ ") + number(expectation.at("at_most"));
  return text;
}

std::string word_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end()) return "";
  return escaped(found->is_string() ? found->get<std::string>() : found->dump());
}

std::string expectations(const RunDirectory& results) {
  std::string rows;
  for (const Json& one : results.summary.at("expectations")) {
    const std::string metric =
        one.contains("collapse") ? "collapse detector" : word_of(one, "metric");
    std::string steps = word_of(one, "from") + " to ";
    steps += one.contains("until") ? word_of(one, "until") : "the end";
    rows += element(
        "tr",
        element("td", badge(text_of(one, "verdict"))) + element("td", word_of(one, "variant")) +
            element("td", metric) + element("td", word_of(one, "aggregate")) +
            element("td", steps) + element("td", wanted(one)) +
            element("td class=\"number\"", one.contains("value") ? number(one.at("value")) : "") +
            element("td class=\"number\"", word_of(one, "step")));
  }
  if (rows.empty()) {
    return section("Expectations", element("p class=\"missing\"",
                                           "The scenario expects nothing: nothing was judged."));
  }
  return section("Expectations", table({"Verdict", "Variant", "Metric", "Aggregate", "Steps",
                                        "Wanted", "Found", "At step"},
                                       rows));
}

std::string findings_of(const Json& collapse) {
  std::string text;
  for (const Json& finding : collapse.at("findings")) {
    text += (text.empty() ? "" : "; ") + text_of(finding, "kind") + " from step " +
            word_of(finding, "onset") + " in " +
            counted(static_cast<std::uint64_t>(finding.at("layers").get<std::int64_t>()), "layer");
  }
  return text.empty() ? "nothing" : text;
}

std::string collapse(const RunDirectory& results) {
  std::string rows;
  for (const RunData& run : results.runs) {
    if (!run.summary.contains("collapse")) continue;
    const Json& report = run.summary.at("collapse");
    rows += element("tr", element("td", escaped(run.name)) +
                              element("td", badge(text_of(report, "verdict"))) +
                              element("td", findings_of(report)));
  }
  return rows.empty() ? "" : section("Collapse detector", table({"Run", "State", "Found"}, rows));
}

std::string key_figures(const RunDirectory& results) {
  std::vector<std::string> headers = {"Metric, last step"};
  std::set<std::string> names;
  for (const RunData& run : results.runs) {
    headers.push_back(escaped(run.name));
    for (const auto& [name, value] : run.summary.at("final").items()) names.insert(name);
  }
  std::string rows;
  for (const std::string& name : names) {
    std::string row = element("th scope=\"row\"", escaped(name));
    for (const RunData& run : results.runs) {
      const auto found = run.summary.at("final").find(name);
      row += element("td class=\"number\"",
                     found == run.summary.at("final").end() ? "–" : number(*found));
    }
    rows += element("tr", row);
  }
  return section("Key figures",
                 rows.empty() ? element("p class=\"missing\"", "The last step has no metrics.")
                              : table(headers, rows));
}

ChartLine line_of(const StepFigures& figures, const std::string& metric, const std::string& name,
                  std::size_t colour) {
  ChartLine line{.name = name,
                 .x = {},
                 .y = {},
                 .colour = colour % chart_colours,
                 .is_dashed = colour >= chart_colours};
  const auto found = figures.figures.find(metric);
  if (found == figures.figures.end()) return line;
  line.x = figures.steps;
  line.y = found->second;
  return line;
}

/// A metric of the training steps, a line for each run.
std::string metric_chart(const RunDirectory& results, const std::string& metric,
                         const std::string& title) {
  LineChart chart{.title = title, .x_label = "step", .lines = {}};
  for (std::size_t r = 0; r < results.runs.size(); ++r) {
    ChartLine line = line_of(results.runs[r].metrics, metric, results.runs[r].name, r);
    if (!line.x.empty()) chart.lines.push_back(std::move(line));
  }
  return line_chart(chart);
}

std::string evaluation_chart(const RunDirectory& results) {
  LineChart chart{.title = "Evaluation loss, loss", .x_label = "step", .lines = {}};
  for (std::size_t r = 0; r < results.runs.size(); ++r) {
    ChartLine line = line_of(results.runs[r].evaluations, "loss", results.runs[r].name, r);
    line.has_points = line.x.size() <= 60;
    if (!line.x.empty()) chart.lines.push_back(std::move(line));
  }
  const std::string drawn = line_chart(chart);
  return drawn.empty() ? element("p class=\"missing\"", "No evaluation loss was recorded.") : drawn;
}

std::string metric_charts(const RunDirectory& results) {
  constexpr std::array<std::array<const char*, 2>, 9> shown = {{
      {"e_max_violation:mean", "Max violation, mean over layers, e_max_violation:mean"},
      {"e_max_violation:max", "Max violation, largest of the layers, e_max_violation:max"},
      {"e_min_violation:mean", "Min violation, e_min_violation:mean"},
      {"e_frac_with_tokens:mean", "Experts with tokens, share, e_frac_with_tokens:mean"},
      {"e_frac_oversubscribed:mean", "Experts above balance, share, e_frac_oversubscribed:mean"},
      {"dead_experts", "Experts without a token in the step, all layers, dead_experts"},
      {"bias_range", "Range of the biases (largest less smallest), bias_range"},
      {"router_gradient", "Norm of the router's gradient, router_gradient"},
      {"loss", "Training loss, loss"},
  }};
  std::string charts;
  for (const auto& [metric, title] : shown) charts += metric_chart(results, metric, title);
  if (charts.empty()) charts = element("p class=\"missing\"", "No metrics were recorded.");
  const bool has_loss = std::ranges::any_of(
      results.runs, [](const RunData& run) { return run.metrics.figures.contains("loss"); });
  if (!has_loss) charts += element("p class=\"missing\"", "No training loss was recorded.");
  return section("Over the steps",
                 element("div class=\"charts\"", charts + evaluation_chart(results)));
}

std::string loads(const RunDirectory& results) {
  const std::size_t shown = std::min(results.runs.size(), most_load_sections);
  std::string text = heat_key();
  for (std::size_t r = 0; r < shown; ++r) {
    text += element("h3", escaped(results.runs[r].name)) + "\n";
    text += load_section(results.runs[r], shown);
  }
  if (shown < results.runs.size()) {
    text += element("p class=\"note\"", "The loads of the first " + std::to_string(shown) + " of " +
                                            std::to_string(results.runs.size()) +
                                            " variants are shown.");
  }
  return section("Expert loads", text);
}

std::string events(const RunDirectory& results) {
  std::string rows;
  std::size_t count = 0;
  for (const RunData& run : results.runs) {
    if (!run.summary.contains("events")) continue;
    for (const Json& event : run.summary.at("events")) {
      if (++count > most_events) continue;
      std::string what = word_of(event, "event");
      if (event.contains("from_checkpoint"))
        what += " from checkpoint " + word_of(event, "from_checkpoint");
      rows += element("tr", element("td", escaped(run.name)) +
                                element("td class=\"number\"", word_of(event, "step")) +
                                element("td", what));
    }
  }
  if (rows.empty()) return "";
  std::string text = table({"Run", "Step", "Event"}, rows);
  if (count > most_events) {
    text += element("p class=\"note\"",
                    "and " + std::to_string(count - most_events) + " more, in summary.json");
  }
  return section("Events", text);
}

std::string scenario(const RunDirectory& results) {
  if (results.scenario.empty()) return "";
  if (results.scenario.size() > most_scenario_bytes) {
    return section("Scenario", element("p class=\"note\"", "It is long: see scenario.json."));
  }
  return section("Scenario",
                 element("details", element("summary", "scenario.json, as it was run") +
                                        element("pre", escaped_lines(results.scenario))));
}

}  // namespace

std::string report_page(const RunDirectory& results) {
  const std::string title = text_of(results.summary, "name") + " – Ballast report";
  const std::string header =
      "<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n" +
      element("title", title) + "\n" + element("style", style_sheet) + "\n";
  const std::string body = head(results) + expectations(results) + collapse(results) +
                           key_figures(results) + metric_charts(results) + loads(results) +
                           events(results) + scenario(results);
  return "<!DOCTYPE html>\n" +
         element("html lang=\"en\"",
                 "\n" + element("head", "\n" + header) + "\n" + element("body", "\n" + body)) +
         "\n";
}

}  // namespace ballast::sim
