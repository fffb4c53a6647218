#pragma once

#include <span>
#include <string>
#include <vector>

namespace ballast::sim {

/// Loads as shares of perfect balance (1 is perfect, 0 is none; NaN is drawn as nothing), row by
/// row.
struct HeatMap {
  std::string title, note;
  std::string row_label, column_label;
  std::vector<std::vector<double>> rows;  ///< all of one length
  std::size_t rows_per_label = 1;         ///< what a row stands for: row r begins with r * this
  std::vector<double> column_ends;  ///< the label of each column: the last step of its interval
};

/// The class of colour of a share of perfect balance: 0 for none, 5 for about perfect balance
/// (from 0.8 to 1.25), 9 for over 8 times.
int heat_class(double share);
inline constexpr int heat_classes = 10;

/// The map as a `<figure>` with an inline SVG. Cells of one colour are one path, with a title that
/// says what the colour means. At most 16 bytes a cell.
std::string heat_map(const HeatMap& map);

/// The key to the colours of all maps.
std::string heat_key();

}  // namespace ballast::sim
