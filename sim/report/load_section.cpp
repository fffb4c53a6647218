#include "sim/report/load_section.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "sim/report/heat_map.h"
#include "sim/report/html.h"
#include "sim/report/line_chart.h"
#include "sim/text/numbers.h"

namespace ballast::sim {
namespace {

constexpr std::size_t most_layers = 4, most_columns = 48, most_rows = 128;
/// Cells of all maps of a page: they are what could make it large.
constexpr std::size_t most_cells = 48'000;
/// An expert with less than this share of perfect balance is starved.
constexpr double starved_share = 0.25;

using Counts = std::vector<std::int64_t>;

std::int64_t total(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

double perfect_balance(const Counts& counts) {
  return static_cast<double>(total(counts)) / static_cast<double>(counts.size());
}

/// counts / perfect balance; NaN when there were no assignments.
std::vector<double> shares(const Counts& counts) {
  const double balance = perfect_balance(counts);
  std::vector<double> result;
  for (const std::int64_t count : counts) {
    result.push_back(balance > 0 ? static_cast<double>(count) / balance
                                 : std::numeric_limits<double>::quiet_NaN());
  }
  return result;
}

/// The largest of shares; NaN when there are none.
double hottest(std::span<const double> values) {
  return values.empty() ? std::numeric_limits<double>::quiet_NaN() : std::ranges::max(values);
}

/// Neighbouring log intervals drawn together, so that there are at most `most_columns`.
struct Columns {
  std::size_t together;
  std::vector<double> ends;
};

Columns columns_of(const RunData& run) {
  Columns columns{.together = (run.intervals.size() + most_columns - 1) / most_columns, .ends = {}};
  for (std::size_t i = 0; i < run.intervals.size(); i += columns.together) {
    const std::size_t last = std::min(i + columns.together, run.intervals.size()) - 1;
    columns.ends.push_back(static_cast<double>(run.intervals[last].last_step));
  }
  return columns;
}

/// [columns][experts], the shares of a layer.
std::vector<std::vector<double>> layer_shares(const RunData& run, std::size_t layer,
                                              const Columns& columns) {
  std::vector<std::vector<double>> all;
  for (std::size_t i = 0; i < run.intervals.size(); i += columns.together) {
    Counts sum = run.intervals[i].layers[layer].counts;
    for (std::size_t j = i + 1; j < std::min(i + columns.together, run.intervals.size()); ++j) {
      const Counts& more = run.intervals[j].layers[layer].counts;
      std::ranges::transform(sum, more, sum.begin(), std::plus<>());
    }
    all.push_back(shares(sum));
  }
  return all;
}

/// Rows from columns; as many neighbours together as it takes, shown by the largest of them.
void set_rows(HeatMap& map, const std::vector<std::vector<double>>& by_column,
              std::size_t row_limit) {
  const std::size_t count = by_column.front().size();
  map.rows_per_label = (count + row_limit - 1) / row_limit;
  for (std::size_t r = 0; r < count; r += map.rows_per_label) {
    const std::size_t size = std::min(map.rows_per_label, count - r);
    std::vector<double> row;
    for (const auto& column : by_column) row.push_back(hottest(std::span(column).subspan(r, size)));
    map.rows.push_back(std::move(row));
  }
}

std::string drawn_together(const Columns& columns, const HeatMap& map, const std::string& what) {
  std::string note;
  if (map.rows_per_label > 1) {
    note += "A row is " + std::to_string(map.rows_per_label) + " neighbouring " + what +
            ", shown by the most loaded. ";
  }
  if (columns.together > 1)
    note += "A column is " + std::to_string(columns.together) + " log intervals added up. ";
  return note;
}

std::string layer_map(const RunData& run, std::size_t layer, const Columns& columns,
                      std::size_t row_limit) {
  HeatMap map{.title = run.intervals.back().layers[layer].name,
              .note = {},
              .row_label = "Experts downwards, from 0",
              .column_label = "last step of the log interval",
              .rows = {},
              .column_ends = columns.ends};
  set_rows(map, layer_shares(run, layer, columns), row_limit);
  map.note = drawn_together(columns, map, "experts");
  return heat_map(map);
}

std::string overview_map(const RunData& run, const Columns& columns, std::size_t row_limit) {
  HeatMap map{.title = "All layers: the most loaded expert of each",
              .note = {},
              .row_label = "Layers downwards, from 0",
              .column_label = "last step of the log interval",
              .rows = {},
              .column_ends = columns.ends};
  std::vector<std::vector<double>> by_column(columns.ends.size());
  for (std::size_t layer = 0; layer < run.intervals.back().layers.size(); ++layer) {
    const auto own = layer_shares(run, layer, columns);
    for (std::size_t c = 0; c < own.size(); ++c) by_column[c].push_back(hottest(own[c]));
  }
  set_rows(map, by_column, row_limit);
  map.note = drawn_together(columns, map, "layers");
  return heat_map(map);
}

/// The layers with the largest load of one expert in the last interval, in their own order.
std::vector<std::size_t> shown_layers(const LoadInterval& last) {
  std::vector<std::size_t> layers(last.layers.size());
  std::iota(layers.begin(), layers.end(), std::size_t{0});
  const auto unevenness = [&](std::size_t layer) {
    const double value = hottest(shares(last.layers[layer].counts));
    return std::isnan(value) ? -1.0 : value;
  };
  std::ranges::stable_sort(layers, std::ranges::greater(), unevenness);
  layers.resize(std::min(layers.size(), most_layers));
  std::ranges::sort(layers);
  return layers;
}

std::string profiles(const LoadInterval& last, const std::vector<std::size_t>& layers) {
  LineChart chart{.title = "Sorted load of the last log interval, ÷ perfect balance",
                  .x_label = "experts, most loaded first",
                  .lines = {},
                  .reference = 1.0,
                  .reference_name = "perfect balance"};
  for (const std::size_t layer : layers) {
    ChartLine line{.name = last.layers[layer].name,
                   .x = {},
                   .y = shares(last.layers[layer].counts),
                   .colour = chart.lines.size()};
    if (total(last.layers[layer].counts) == 0) continue;
    std::ranges::sort(line.y, std::ranges::greater());
    for (std::size_t i = 0; i < line.y.size(); ++i) line.x.push_back(static_cast<double>(i + 1));
    chart.lines.push_back(std::move(line));
  }
  return line_chart(chart);
}

/// "3: 0, 4, 17": how many, and the first of them by number.
std::string numbered(const std::vector<std::size_t>& experts) {
  constexpr std::size_t most_named = 12;
  if (experts.empty()) return "none";
  std::string text = std::to_string(experts.size()) + ":";
  for (std::size_t i = 0; i < std::min(experts.size(), most_named); ++i)
    text += (i == 0 ? " " : ", ") + std::to_string(experts[i]);
  return experts.size() > most_named ? text + ", …" : text;
}

std::string most_loaded(const Counts& counts, const std::vector<double>& loads) {
  std::vector<std::size_t> order(counts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t e) { return counts[e]; });
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, order.size()); ++i) {
    const std::size_t e = order[i];
    text += (i == 0 ? "" : "; ") + std::string("expert ") + std::to_string(e) + ": " +
            std::to_string(counts[e]) + " (" + significant(loads[e], 4) + "×)";
  }
  return text;
}

std::string expert_row(const LayerLoads& layer) {
  std::string row = element("td", escaped(layer.name)) +
                    element("td class=\"number\"", std::to_string(total(layer.counts)));
  if (total(layer.counts) == 0)
    return element("tr", row + element("td colspan=\"4\"", "no assignments in this interval"));
  const auto loads = shares(layer.counts);
  std::vector<std::size_t> dead, starved;
  for (std::size_t e = 0; e < loads.size(); ++e) {
    if (layer.counts[e] == 0)
      dead.push_back(e);
    else if (loads[e] < starved_share)
      starved.push_back(e);
  }
  return element(
      "tr", row + element("td class=\"number\"", significant(perfect_balance(layer.counts), 6)) +
                element("td", numbered(dead)) + element("td", numbered(starved)) +
                element("td", most_loaded(layer.counts, loads)));
}

std::string expert_table(const LoadInterval& last, const std::vector<std::size_t>& layers) {
  std::string rows;
  for (const std::size_t layer : layers) rows += expert_row(last.layers[layer]);
  return element("h4", "Experts in the last log interval, steps " +
                           std::to_string(last.first_step) + " to " +
                           std::to_string(last.last_step)) +
         table({"Layer", "Assignments", "Perfect balance", "Dead experts (no token)",
                "Starved (under ¼ of balance)", "Most loaded"},
               rows);
}

}  // namespace

std::string load_section(const RunData& run, std::size_t runs) {
  if (run.intervals.empty())
    return element("p class=\"missing\"", "No log interval was recorded: no loads to show.");
  const LoadInterval& last = run.intervals.back();
  if (last.layers.empty() || last.layers.front().counts.empty()) {
    return element(
        "p class=\"missing\"",
        "The diagnostics name no MoE layer: the collector was off, or the model has none.");
  }
  const auto layers = shown_layers(last);
  const Columns columns = columns_of(run);
  const std::size_t row_limit = std::clamp<std::size_t>(
      most_cells / (runs * (most_layers + 1) * columns.ends.size()), 8, most_rows);
  std::string maps, text;
  if (layers.size() < last.layers.size()) {
    text = element("p class=\"note\"", "Of " + counted(last.layers.size(), "layer") + " the " +
                                           std::to_string(layers.size()) +
                                           " with the largest load of one expert in the last log "
                                           "interval are shown one by one.");
    maps += overview_map(run, columns, row_limit);
  }
  for (const std::size_t layer : layers) maps += layer_map(run, layer, columns, row_limit);
  return text + element("div class=\"charts\"", maps + profiles(last, layers)) +
         expert_table(last, layers);
}

}  // namespace ballast::sim
