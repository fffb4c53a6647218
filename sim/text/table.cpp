#include "sim/text/table.h"

#include <algorithm>
#include <ostream>
#include <string_view>
#include <utility>

#include "sim/text/printable.h"

namespace ballast::sim {
namespace {

constexpr std::string_view gap = "  ";
/// A column is not cut back below this, however long the line.
constexpr std::size_t min_cut_width = 8;

/// The first `width` code points of the text.
std::string_view first_columns(std::string_view text, std::size_t width) {
  std::size_t end = 0;
  for (std::size_t seen = 0; end < text.size(); ++end) {
    const bool starts_character = (static_cast<unsigned char>(text[end]) & 0xC0u) != 0x80u;
    if (starts_character && seen++ == width) break;
  }
  return text.substr(0, end);
}

std::string cut(const std::string& text, std::size_t width) {
  if (display_width(text) <= width || width == 0) return text;
  return std::string(first_columns(text, width - 1)) + "…";
}

}  // namespace

Table::Table(std::vector<Column> columns, bool colour)
    : columns_(std::move(columns)), colour_(colour) {
  for (Column& column : columns_)
    column.width = std::max(column.width, display_width(column.header));
}

std::string Table::header() const {
  Row row;
  for (const Column& column : columns_) row.emplace_back(column.header, Tone::faint);
  return format(row);
}

std::string Table::line(const Row& row) const {
  return format(row);
}

std::string Table::format(const Row& row) const {
  std::string line;
  std::string pending;  // blanks that are written only if something follows
  for (std::size_t i = 0; i < std::min(row.size(), columns_.size()); ++i) {
    const Column& column = columns_[i];
    const std::string text =
        column.align == Align::left ? cut(row[i].text, column.width) : row[i].text;
    const std::size_t width = display_width(text);
    const std::string blanks(width < column.width ? column.width - width : 0, ' ');
    if (i > 0) pending += gap;
    if (column.align == Align::right) pending += blanks;
    if (!text.empty()) line += std::exchange(pending, "") + toned(text, row[i].tone, colour_);
    if (column.align == Align::left) pending += blanks;
  }
  return line + '\n';
}

void Table::fit(std::span<const Row> rows, std::size_t max_width) {
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < std::min(row.size(), columns_.size()); ++i) {
      columns_[i].width = std::max(columns_[i].width, display_width(row[i].text));
    }
  }
  if (line_width() <= max_width) return;
  Column* widest = nullptr;
  for (Column& column : columns_) {
    if (column.align == Align::left && (widest == nullptr || column.width > widest->width))
      widest = &column;
  }
  if (widest == nullptr) return;
  const std::size_t excess = line_width() - max_width;
  widest->width = std::max(min_cut_width, widest->width - std::min(widest->width, excess));
}

std::size_t Table::line_width() const {
  std::size_t width = columns_.empty() ? 0 : gap.size() * (columns_.size() - 1);
  for (const Column& column : columns_) width += column.width;
  return width;
}

void Table::write(std::ostream& out, std::span<const Row> rows, std::size_t max_width) {
  fit(rows, max_width);
  out << header();
  for (const Row& row : rows) out << line(row);
}

}  // namespace ballast::sim
