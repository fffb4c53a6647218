#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ballast::sim {

/// A line: `y` over ascending `x`, both of one length; NaN in y is a gap.
struct ChartLine {
  std::string name;
  std::vector<double> x, y;
  std::size_t colour = 0;  ///< which of the page's colours
  bool is_dashed = false;
  bool has_points = false;  ///< marks each point, for lines of few
};

/// A chart of lines over one axis.
struct LineChart {
  std::string title, x_label;
  std::vector<ChartLine> lines;
  std::optional<double> reference =
      std::nullopt;  ///< a level drawn across, such as perfect balance
  std::string reference_name = {};
};

/// Colours that the page knows: classes c0, c1, ... of lines and keys.
inline constexpr std::size_t chart_colours = 6;

/// The chart as a `<figure>` with an inline SVG and its key. Says so where lines of many points are
/// drawn by the smallest and largest of each pixel column. Empty when no line has a finite value.
/// O(points).
std::string line_chart(const LineChart& chart);

}  // namespace ballast::sim
