#include "sim/report/line_chart.h"

#include <algorithm>
#include <cmath>

#include "sim/report/html.h"
#include "sim/report/scale.h"
#include "sim/text/numbers.h"
#include "sim/text/printable.h"

namespace ballast::sim {
namespace {

constexpr double width = 560, height = 240;
constexpr double left = 56, right = 12, top = 10, bottom = 38;
constexpr double plot_width = width - left - right, plot_height = height - top - bottom;

struct Range {
  double low = HUGE_VAL, high = -HUGE_VAL;

  void take(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool is_empty() const { return low > high; }
  /// Where in the range, from 0 to 1; the middle when there is but one value. Halves, for the
  /// difference of two finite numbers may not be finite.
  double share(double value) const {
    return low == high ? 0.5 : (value / 2 - low / 2) / (high / 2 - low / 2);
  }
};

class Plot {
 public:
  explicit Plot(const LineChart& chart) : chart_(chart) {
    for (const ChartLine& line : chart.lines) {
      for (std::size_t i = 0; i < line.x.size(); ++i) {
        if (!std::isfinite(line.y[i])) continue;
        x_.take(line.x[i]);
        y_.take(line.y[i]);
      }
    }
    if (y_.is_empty()) return;
    if (chart.reference) y_.take(*chart.reference);
    // A scale from zero, unless that would leave nothing to see.
    if (y_.low > 0 && y_.low < y_.high / 2) y_.low = 0;
    if (y_.high < 0 && y_.high > y_.low / 2) y_.high = 0;
  }

  bool is_empty() const { return y_.is_empty(); }
  bool is_thinned() const { return is_thinned_; }

  std::string svg() {
    std::string drawing = axes();
    for (const ChartLine& line : chart_.lines) drawing += drawn(line);
    return element("svg viewBox=\"0 0 " + fixed(width, 0) + " " + fixed(height, 0) +
                       "\" role=\"img\" aria-label=\"" + escaped(chart_.title) + "\"",
                   drawing);
  }

 private:
  std::string x_at(double value) const { return fixed(left + plot_width * x_.share(value), 1); }
  std::string y_at(double value) const {
    return fixed(top + plot_height * (1 - y_.share(value)), 1);
  }

  std::string level(double value, const std::string& style) const {
    const std::string y = y_at(value);
    return "<line class=\"" + style + "\" x1=\"" + fixed(left, 0) + "\" x2=\"" +
           fixed(width - right, 0) + "\" y1=\"" + y + "\" y2=\"" + y + "\"/>";
  }

  std::string axes() const {
    std::string drawing;
    const auto levels = round_ticks(y_.low, y_.high, 5);
    // A single value is not round, and has to fit.
    const int digits = levels.size() == 1 ? 4 : 6;
    for (const double tick : levels) {
      drawing += level(tick, "grid");
      drawing += element("text class=\"tick\" text-anchor=\"end\" dy=\"0.32em\" x=\"" +
                             fixed(left - 6, 0) + "\" y=\"" + y_at(tick) + "\"",
                         significant(tick, digits));
    }
    for (const double tick : round_ticks(x_.low, x_.high, 6)) {
      drawing += element("text class=\"tick\" text-anchor=\"middle\" x=\"" + x_at(tick) +
                             "\" y=\"" + fixed(height - bottom + 16, 0) + "\"",
                         significant(tick, 9));
    }
    drawing +=
        element("text class=\"tick\" text-anchor=\"middle\" x=\"" +
                    fixed(left + plot_width / 2, 0) + "\" y=\"" + fixed(height - 5, 0) + "\"",
                escaped(chart_.x_label));
    return chart_.reference ? drawing + level(*chart_.reference, "reference") : drawing;
  }

  /// Name, smallest, largest and last value, which a browser shows under the pointer.
  static std::string tip(const ChartLine& line) {
    Range range;
    double last = 0;
    for (const double value : line.y) {
      range.take(value);
      if (std::isfinite(value)) last = value;
    }
    return element("title", escaped(line.name) + ": smallest " + significant(range.low, 5) +
                                ", largest " + significant(range.high, 5) + ", last " +
                                significant(last, 5));
  }

  std::string drawn(const ChartLine& line) {
    // Charts of many lines share what a page may hold.
    const std::size_t columns =
        static_cast<std::size_t>(plot_width) * 4 / std::max<std::size_t>(4, chart_.lines.size());
    const auto kept = kept_points(line.x, line.y, std::max<std::size_t>(columns, 8));
    is_thinned_ = is_thinned_ || kept.size() < line.x.size();
    std::string path, marks;
    bool is_down = false;  // the pen
    for (std::size_t k = 0; k < kept.size(); ++k) {
      const auto finite = [&](std::size_t i) {
        return i < kept.size() && std::isfinite(line.y[kept[i]]);
      };
      if (!finite(k)) {
        is_down = false;
        continue;
      }
      const std::string x = x_at(line.x[kept[k]]), y = y_at(line.y[kept[k]]);
      path.append(is_down ? "L" : "M").append(x).append(" ").append(y);
      const bool is_alone = !is_down && !finite(k + 1);
      is_down = true;
      if (!line.has_points && !is_alone) continue;
      marks +=
          element("circle r=\"3\" cx=\"" + x + "\" cy=\"" + y + "\"",
                  element("title", escaped(line.name) + ", " + significant(line.x[kept[k]], 9) +
                                       ": " + significant(line.y[kept[k]], 5)));
    }
    if (path.empty()) return "";
    return element("g class=\"series c" + std::to_string(line.colour % chart_colours) +
                       (line.is_dashed ? " dashed" : "") + "\"",
                   element("path d=\"" + path + "\"", tip(line)) + marks);
  }

  const LineChart& chart_;
  Range x_, y_;
  bool is_thinned_ = false;
};

std::string key(const LineChart& chart) {
  std::string entries;
  const auto entry = [](const std::string& style, const std::string& name) {
    return element("span class=\"key\"",
                   element("svg class=\"swatch\" viewBox=\"0 0 22 8\" aria-hidden=\"true\"",
                           element("g class=\"" + style + "\"", "<path d=\"M0 4L22 4\"/>")) +
                       escaped(name));
  };
  for (const ChartLine& line : chart.lines) {
    entries += entry("series c" + std::to_string(line.colour % chart_colours) +
                         (line.is_dashed ? " dashed" : ""),
                     line.name);
  }
  if (chart.reference) entries += entry("reference", chart.reference_name);
  return entries;
}

}  // namespace

std::string line_chart(const LineChart& chart) {
  Plot plot(chart);
  if (plot.is_empty()) return "";
  const std::string svg = plot.svg();
  std::string caption = element("strong", escaped(chart.title)) + "<br/>" + key(chart);
  if (plot.is_thinned()) {
    caption += element("span class=\"note\"",
                       " More points than pixels: of each pixel column the smallest and the "
                       "largest are drawn.");
  }
  return element("figure", element("figcaption", caption) + svg) + "\n";
}

}  // namespace ballast::sim
