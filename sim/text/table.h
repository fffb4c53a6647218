#pragma once

#include <cstddef>
#include <iosfwd>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/text/terminal.h"

namespace ballast::sim {

enum class Align { left, right };

/// A column of a table: at least `width` characters wide, and at least as wide as its header.
struct Column {
  std::string header;
  Align align = Align::right;
  std::size_t width = 0;
};

struct Cell {
  Cell(std::string text_, Tone tone_ = Tone::plain) : text(std::move(text_)), tone(tone_) {}
  Cell(const char* text_) : text(text_) {}
  std::string text;
  Tone tone = Tone::plain;
};

using Row = std::vector<Cell>;

/// Text in columns, two blanks apart, without blanks at line ends. Used in one of two ways: row by
/// row with the widths the columns were given (a table that grows while a run goes on), or all rows
/// at once with widths that fit them.
class Table {
 public:
  /// `colour`: whether tones are shown; take it from `may_colour(stream)`.
  explicit Table(std::vector<Column> columns, bool colour = false);

  /// The header, and one row, each with its line end. A row shorter than the table ends early; text
  /// wider than its column ends in "…" when it is aligned left, and pushes the row when it is a
  /// number.
  std::string header() const;
  std::string line(const Row& row) const;

  /// The width of the last column, for what is drawn to fill it.
  std::size_t last_width() const { return columns_.back().width; }

  /// Widens columns to what the rows need; when a line would be longer than `max_width`, the widest
  /// column aligned left is cut back for it.
  void fit(std::span<const Row> rows, std::size_t max_width = 80);

  /// Fits, and writes the header and all rows.
  void write(std::ostream& out, std::span<const Row> rows, std::size_t max_width = 80);

 private:
  std::size_t line_width() const;
  std::string format(const Row& row) const;

  std::vector<Column> columns_;
  bool colour_;
};

}  // namespace ballast::sim
