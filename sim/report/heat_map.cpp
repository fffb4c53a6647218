#include "sim/report/heat_map.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/report/html.h"
#include "sim/report/scale.h"
#include "sim/text/numbers.h"
#include "sim/text/printable.h"

namespace ballast::sim {
namespace {

/// Upper ends of the classes 1 to 8: the same factors on both sides of perfect balance.
constexpr std::array<double, 8> upper_ends = {0.125, 0.25, 0.5, 0.8, 1.25, 2, 4, 8};

std::string meaning(int heat) {
  if (heat == 0) return "no tokens";
  const auto i = static_cast<std::size_t>(heat);
  const std::string low = heat == 1 ? "0" : shortest(upper_ends[i - 2]);
  return heat > 8 ? "over 8" : low + " to " + shortest(upper_ends[i - 1]);
}

/// Cells side by side of one class become one rectangle.
std::string cells(const HeatMap& map, int heat) {
  std::string path;
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    const auto& row = map.rows[r];
    for (std::size_t c = 0; c < row.size();) {
      std::size_t end = c;
      while (end < row.size() && !std::isnan(row[end]) && heat_class(row[end]) == heat) ++end;
      if (end == c) {
        ++c;
        continue;
      }
      path += "M" + std::to_string(c) + " " + std::to_string(r) + "h" + std::to_string(end - c) +
              "v1h-" + std::to_string(end - c) + "z";
      c = end;
    }
  }
  return path;
}

std::string label(double x, double y, const char* anchor, const std::string& text) {
  return element("text class=\"tick\" text-anchor=\"" + std::string(anchor) + "\" x=\"" +
                     fixed(x, 1) + "\" y=\"" + fixed(y, 1) + "\"",
                 text);
}

}  // namespace

int heat_class(double share) {
  if (share <= 0) return 0;
  return 1 + static_cast<int>(std::ranges::lower_bound(upper_ends, share) - upper_ends.begin());
}

std::string heat_map(const HeatMap& map) {
  constexpr double left = 46, top = 4, bottom = 32, plot_width = 500;
  const auto rows = static_cast<double>(map.rows.size());
  const auto columns = static_cast<double>(map.column_ends.size());
  const double plot_height = std::clamp(rows * 9, 60.0, 300.0);
  const double cell_width = plot_width / columns, cell_height = plot_height / rows;
  std::string cells_by_class;
  for (int heat = 0; heat < heat_classes; ++heat) {
    const std::string path = cells(map, heat);
    if (path.empty()) continue;
    cells_by_class +=
        element("path class=\"h" + std::to_string(heat) + "\" d=\"" + path + "\"",
                element("title", meaning(heat) + (heat == 0 ? "" : " × perfect balance")));
  }
  std::string drawing = element("g shape-rendering=\"crispEdges\" transform=\"translate(" +
                                    fixed(left, 0) + " " + fixed(top, 0) + ") scale(" +
                                    fixed(cell_width, 4) + " " + fixed(cell_height, 4) + ")\"",
                                cells_by_class);
  for (const double tick : round_ticks(0, rows * static_cast<double>(map.rows_per_label) - 1, 5)) {
    const double row = std::floor(tick / static_cast<double>(map.rows_per_label));
    drawing += label(left - 5, top + (row + 0.5) * cell_height + 4, "end", significant(tick, 9));
  }
  const std::size_t every = (map.column_ends.size() + 5) / 6;
  for (std::size_t c = every - 1; c < map.column_ends.size(); c += every) {
    drawing += label(left + (static_cast<double>(c) + 0.5) * cell_width, top + plot_height + 13,
                     "middle", significant(map.column_ends[c], 9));
  }
  drawing +=
      label(left + plot_width / 2, top + plot_height + 28, "middle", escaped(map.column_label));
  const std::string box =
      "0 0 " + fixed(left + plot_width + 14, 0) + " " + fixed(top + plot_height + bottom, 0);
  return element(
             "figure class=\"heat\"",
             element("figcaption", element("strong", escaped(map.title)) + "<br/>" +
                                       element("span class=\"note\"",
                                               escaped(map.row_label) + ". " + escaped(map.note))) +
                 element("svg viewBox=\"" + box + "\" role=\"img\" aria-label=\"" +
                             escaped(map.title) + "\"",
                         drawing)) +
         "\n";
}

std::string heat_key() {
  std::string key;
  for (int heat = 0; heat < heat_classes; ++heat) {
    key +=
        element("span class=\"key\"",
                element("svg class=\"square\" viewBox=\"0 0 10 10\" aria-hidden=\"true\"",
                        "<path class=\"h" + std::to_string(heat) + "\" d=\"M0 0h10v10h-10z\"/>") +
                    meaning(heat));
  }
  return element("p class=\"keys\"", "Load of an expert ÷ perfect balance: " + key);
}

}  // namespace ballast::sim
