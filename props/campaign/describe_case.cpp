#include "props/campaign/describe_case.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <type_traits>
#include <vector>

#include "props/protocol/words.h"
#include "sim/text/printable.h"

namespace ballast::props {

namespace {

constexpr std::size_t rows_max = 16;
constexpr std::size_t columns_max = 78;

template <class Number>
std::string shortest(Number value) {
  std::array<char, 48> digits;
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}

std::string plural(std::size_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

/// A table whose cells are already text.
struct Grid {
  std::string row_name;     ///< "token"
  std::string column_name;  ///< "expert"
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> row_notes;  ///< after the row; empty: none
};

class Description {
 public:
  Description(const std::set<std::string>& irrelevant, std::size_t indent)
      : irrelevant_(irrelevant), indent_(indent) {}

  std::string write(const Case& input) {
    write_open(input.open);
    for (std::size_t i = 0; i < input.history.size(); ++i) {
      pointer_ = "/requests/" + std::to_string(i + 1);
      number_ = std::to_string(i) + ". ";
      std::visit(*this, input.history[i]);
    }
    return std::move(text_);
  }

  void operator()(const Forward& forward) {
    std::string line = word(forward.mode) + " forward, layer " + std::to_string(forward.layer) + ", rank " +
                       std::to_string(forward.rank) + ", " + plural(forward.logits.rows(), "token");
    head(line + (forward.logits.rows() > 0 ? ", logits" : ""));
    Grid grid{"token", "expert", {}, {}};
    for (std::size_t t = 0; t < forward.logits.rows(); ++t) {
      grid.rows.push_back(cells(forward.logits.row(t), "/logits/" + std::to_string(t)));
      if (!forward.mask.empty()) grid.row_notes.push_back(forward.mask[t] != 0 ? "" : "  padding");
    }
    write_grid(grid);
  }
  void operator()(const Step& step) { head(step.applied ? "step" : "step, skipped on overflow"); }
  void operator()(const GetBiases&) { head("biases"); }
  void operator()(const SetBiases& set) {
    head("set biases");
    write_table("layer", "expert", set.biases, "/biases");
  }
  void operator()(const Collector& collector) {
    const bool disabled = collector.action == CollectorAction::enter && !collector.enabled;
    head("collector " + word(collector.action) + (disabled ? ", disabled" : ""));
  }
  void operator()(const MetricsOf& of) {
    head("metrics of the counts");
    write_table("layer", "expert", of.counts, "/counts");
  }
  void operator()(const Combine& combine) {
    head("combine " + plural(combine.chunks.size(), "chunk"));
    for (const Chunk& chunk : combine.chunks) {
      std::string text = "   data " + std::to_string(chunk.data);
      for (const auto& [key, value] : chunk.metrics) text += ", " + sim::printable(key) + " " + shortest(value);
      wrapped(text, 6);
    }
  }
  void operator()(const Save&) { head("save"); }
  void operator()(const Load& load) { head("load what save " + std::to_string(load.slot) + " gave (from 0)"); }

 private:
  void line(const std::string& text) { text_ += std::string(indent_, ' ') + text + "\n"; }
  void head(const std::string& text) { line(number_ + text); }
  void wrapped(const std::string& text, std::size_t more) {
    text_ += sim::wrapped(text, columns_max, indent_ + more);
  }
  std::string mark(const std::string& pointer) const {
    return irrelevant_.contains(pointer_ + pointer) ? "*" : "";
  }

  void write_open(const Open& open) {
    pointer_ = "/requests/0";
    const ModelSpec& model = open.model;
    std::string text = plural(model.layers, "layer") + ", " + plural(model.routed_experts, "expert") + ", top " +
                       std::to_string(model.top_k) + ", score " + word(model.score) + mark("/model/score") + ", " +
                       (model.renormalize ? "renormalized" : "not renormalized") + mark("/model/renormalize");
    if (model.routed_scale != 1.0) text += ", scale " + shortest(model.routed_scale) + mark("/model/routed_scale");
    if (model.groups) {
      text += ", the best " + std::to_string(model.groups->topk_group) + " of " +
              plural(model.groups->n_group, "group");
    }
    if (open.ranks != 1) text += ", " + plural(open.ranks, "rank");
    wrapped(text + ", " + balancer(open.balancer), 0);
    if (!open.biases) return;
    line("biases");
    write_table("layer", "expert", *open.biases, "/biases");
  }

  static std::string balancer(const BalancerSpec& spec) {
    std::string text = "balancer " + word(spec.kind);
    if (spec.kind == BalancerKind::none) return text;
    if (spec.kind == BalancerKind::sign) text += " of rate " + shortest(spec.rate);
    if (spec.kind == BalancerKind::quantile) {
      text += " " + word(spec.estimator);
      if (spec.estimator == Estimator::histogram) text += " of " + plural(spec.bins, "bin");
    }
    return text + ", updated at every " + word(spec.update);
  }

  template <class Row>
  std::vector<std::string> cells(const Row& row, const std::string& pointer) const {
    std::vector<std::string> out;
    for (std::size_t j = 0; j < row.size(); ++j)
      out.push_back(shortest(row[j]) + mark(pointer + "/" + std::to_string(j)));
    return out;
  }

  template <class Table>
  void write_table(const char* row_name, const char* column_name, const Table& table, const std::string& pointer) {
    Grid grid{row_name, column_name, {}, {}};
    for (std::size_t l = 0; l < table.size(); ++l)
      grid.rows.push_back(cells(table[l], pointer + "/" + std::to_string(l)));
    write_grid(grid);
  }

  void write_grid(const Grid& grid) {
    if (grid.rows.empty()) return;
    std::size_t columns = 0, width = 2;
    for (const auto& row : grid.rows) {
      columns = std::max(columns, row.size());
      for (const auto& cell : row) width = std::max(width, cell.size());
    }
    const std::string blanks(3, ' ');
    const std::size_t first = grid.row_name.size() + 4;
    const std::size_t room = columns_max - indent_ - blanks.size() - first;
    const std::size_t shown = std::min(columns, std::max<std::size_t>(room / (width + 2), 1));
    std::string header = blanks + padded_left(grid.column_name, first);
    for (std::size_t j = 0; j < shown; ++j) header += padded_right(std::to_string(j), width + 2);
    line(trimmed(header) + (shown < columns ? "  ..." : ""));
    for (std::size_t t = 0; t < std::min(grid.rows.size(), rows_max); ++t) {
      std::string text = blanks + padded_left(grid.row_name + " " + std::to_string(t), first);
      for (std::size_t j = 0; j < std::min(shown, grid.rows[t].size()); ++j)
        text += padded_right(grid.rows[t][j], width + 2);
      if (shown < columns) text += "  ...";
      if (t < grid.row_notes.size()) text += grid.row_notes[t];
      line(trimmed(text));
    }
    if (grid.rows.size() > rows_max)
      line(blanks + "... and " + plural(grid.rows.size() - rows_max, grid.row_name) + " more");
  }

  static std::string padded_right(const std::string& text, std::size_t width) {
    return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
  }
  static std::string padded_left(const std::string& text, std::size_t width) {
    return text.size() < width ? text + std::string(width - text.size(), ' ') : text;
  }
  static std::string trimmed(std::string text) {
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }

  const std::set<std::string>& irrelevant_;
  std::size_t indent_;
  std::string pointer_;
  std::string number_;
  std::string text_;
};

}  // namespace

std::string describe_case(const Case& input, const std::set<std::string>& irrelevant, std::size_t indent) {
  return Description(irrelevant, indent).write(input);
}

}  // namespace ballast::props
