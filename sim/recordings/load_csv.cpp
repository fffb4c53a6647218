#include "sim/recordings/load_csv.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <set>

#include "sim/input_error.h"
#include "sim/text/printable.h"

namespace ballast::sim {
namespace {

constexpr const char* top1_suffix = "#top1";

/// Positions of the columns that are understood; -1 for one that is not there.
struct Columns {
  explicit Columns(const std::vector<std::string>& header)
      : number(header.size()),
        layer(find(header, "layer")),
        experts(find(header, "num_experts")),
        top_k(find(header, "top_k")),
        expert(find(header, "expert")),
        count(std::max(find(header, "count"), find(header, "count_topk"))),
        count_top1(find(header, "count_top1")),
        token(find(header, "token_id")) {
    for (const char* name : {"model", "domain", "dataset", "trace"}) {
      if (const int at = find(header, name); at >= 0) trace.push_back(at);
    }
  }

  static int find(const std::vector<std::string>& header, const std::string& name) {
    const auto place = std::find(header.begin(), header.end(), name);
    return place == header.end() ? -1 : static_cast<int>(place - header.begin());
  }

  std::size_t number;
  int layer, experts, top_k, expert, count, count_top1, token;
  std::vector<int> trace;
};

/// One line of the table.
struct LoadRow {
  std::string trace;
  LayerName layer;
  std::optional<std::size_t> experts;
  std::optional<std::size_t> top_k;
  std::int64_t expert = 0;
  std::optional<std::int64_t> count;
  std::optional<std::int64_t> count_top1;
};

std::optional<std::int64_t> integer(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The number in a column, in [least, largest]; nothing when there is no such column or the field
/// is empty.
std::optional<std::int64_t> number(const std::vector<std::string>& fields, int column,
                                   const char* name, std::int64_t least, std::int64_t largest) {
  if (column < 0) return std::nullopt;
  const std::string& text = fields[static_cast<std::size_t>(column)];
  if (text.empty()) return std::nullopt;
  const auto value = integer(text);
  if (!value || *value < least || *value > largest) {
    throw RowFault(ProblemKind::bad_field, std::string(name) + " is '" + printable(text, 40) +
                                               "', not an integer from " + std::to_string(least) +
                                               " to " + std::to_string(largest));
  }
  return value;
}

std::optional<std::size_t> size(std::optional<std::int64_t> value) {
  return value ? std::optional(static_cast<std::size_t>(*value)) : std::nullopt;
}

LayerName parse_layer(const std::vector<std::string>& fields, int column) {
  if (column < 0) return std::int64_t{0};
  const std::string& text = fields[static_cast<std::size_t>(column)];
  if (text.empty()) throw RowFault(ProblemKind::bad_field, "layer is empty");
  if (const auto value = integer(text)) return *value;
  return text;
}

LoadRow parse_load_row(const std::vector<std::string>& fields, const Columns& columns) {
  if (fields.size() != columns.number) {
    throw RowFault(ProblemKind::bad_field, std::to_string(fields.size()) +
                                               " fields where the header has " +
                                               std::to_string(columns.number));
  }
  LoadRow row;
  for (const int column : columns.trace) {
    row.trace += (row.trace.empty() ? "" : "/") + fields[static_cast<std::size_t>(column)];
  }
  constexpr auto most = static_cast<std::int64_t>(max_experts);
  row.layer = parse_layer(fields, columns.layer);
  row.experts = size(number(fields, columns.experts, "num_experts", 1, most));
  row.top_k = size(number(fields, columns.top_k, "top_k", 1, most));
  const auto expert = number(fields, columns.expert, "expert", INT64_MIN, INT64_MAX);
  if (!expert) throw RowFault(ProblemKind::bad_field, "expert is empty");
  row.expert = *expert;
  row.count = number(fields, columns.count, "count", 0, max_assignments);
  row.count_top1 = number(fields, columns.count_top1, "count_top1", 0, max_assignments);
  if (!row.count && !row.count_top1) throw RowFault(ProblemKind::bad_field, "count is empty");
  return row;
}

/// The table of one trace while it is read.
struct Trace {
  std::optional<std::size_t> experts;
  std::optional<std::size_t> top_k;
  std::map<LayerName, std::map<std::int64_t, std::int64_t>> counts;  ///< by layer and expert id
  ProblemLog log;
};

class LoadCsvReader {
 public:
  LoadCsvReader(LineReader& lines, const ReadSettings& settings)
      : lines_(lines), settings_(settings) {}

  std::vector<RecordedRouting> read() {
    Line line;
    while (lines_.next(line) && is_blank(line.text)) {
      file_log_.add(ProblemKind::blank_line, line.number, "");
    }
    const Columns columns(split_csv(line.text));
    while (lines_.next(line)) add(line, columns);
    return finish();
  }

 private:
  void add(const Line& line, const Columns& columns) {
    if (is_blank(line.text)) {
      return file_log_.add(ProblemKind::blank_line, line.number, "");
    }
    LoadRow row;
    try {
      row = parse_load_row(split_csv(line.text), columns);
    } catch (const RowFault& fault) {
      const ProblemKind kind = line.ended ? fault.kind : ProblemKind::truncated_line;
      return file_log_.add(kind, line.number, fault.what());
    }
    const bool sums = columns.token >= 0;
    if (row.count) add_count(row.trace, row, row.top_k, *row.count, sums, line.number);
    if (row.count_top1)
      add_count(row.trace + top1_suffix, row, 1, *row.count_top1, sums, line.number);
  }

  void add_count(const std::string& name, const LoadRow& row, std::optional<std::size_t> top_k,
                 std::int64_t count, bool sums, std::int64_t line) {
    Trace& trace = find_trace(name, row, top_k, line);
    const std::size_t experts = trace.experts.value_or(max_experts);
    if (row.expert < 0 || static_cast<std::uint64_t>(row.expert) >= experts) {
      return trace.log.add(ProblemKind::expert_out_of_range, line,
                           "id " + std::to_string(row.expert) + " where ids are 0 to " +
                               std::to_string(experts - 1));
    }
    if (row.experts != first_row_experts(trace, row) || !same_top_k(trace, top_k)) {
      return trace.log.add(ProblemKind::bad_field, line,
                           "num_experts or top_k differs from the rows before");
    }
    if (!trace.counts.contains(row.layer) && trace.counts.size() == max_layers) {
      throw InputError({.what = "cannot read the recording",
                        .where = lines_.path() + ":" + std::to_string(line),
                        .why = "it has more than " + std::to_string(max_layers) + " layers",
                        .right = "give one row an expert of a layer"});
    }
    const auto [place, is_new] = trace.counts[row.layer].try_emplace(row.expert, count);
    if (is_new) return;
    if (!sums) {
      return trace.log.add(
          ProblemKind::duplicate_record, line,
          "layer " + to_text(row.layer) + ", expert " + std::to_string(row.expert));
    }
    place->second = std::min(max_assignments, place->second + count);
  }

  Trace& find_trace(const std::string& name, const LoadRow& row, std::optional<std::size_t> top_k,
                    std::int64_t line) {
    const auto found = traces_.find(name);
    if (found != traces_.end()) return found->second;
    if (traces_.size() == max_traces) {
      throw InputError({.what = "cannot read the recording",
                        .where = lines_.path() + ":" + std::to_string(line),
                        .why = "it has more than " + std::to_string(max_traces) + " traces",
                        .right = "give up to that many models and domains"});
    }
    order_.push_back(name);
    Trace& trace = traces_[name];
    trace.experts = settings_.experts ? settings_.experts : row.experts;
    const bool is_top1 = name.ends_with(top1_suffix);
    trace.top_k = settings_.top_k && !is_top1 ? settings_.top_k : top_k;
    return trace;
  }

  /// A trace has one number of experts; a given one (--experts) makes the column irrelevant.
  std::optional<std::size_t> first_row_experts(const Trace& trace, const LoadRow& row) const {
    return settings_.experts ? row.experts : trace.experts;
  }
  bool same_top_k(const Trace& trace, std::optional<std::size_t> top_k) const {
    return settings_.top_k || trace.top_k == top_k;
  }

  std::vector<RecordedRouting> finish() {
    std::vector<RecordedRouting> all;
    for (const std::string& name : order_) all.push_back(finish(name, traces_[name]));
    if (all.empty()) all.emplace_back();
    // What belongs to no trace is told with the first.
    const auto problems = file_log_.problems();
    all[0].problems.insert(all[0].problems.begin(), problems.begin(), problems.end());
    for (RecordedRouting& routing : all) routing.format = "load counts";
    return all;
  }

  RecordedRouting finish(const std::string& name, Trace& trace) {
    RecordedRouting routing;
    routing.trace = name;
    routing.top_k = trace.top_k;
    routing.experts = trace.experts.value_or(largest_id(trace) + 1);
    if (!trace.experts) {
      routing.notes.push_back(
          std::to_string(routing.experts) +
          " experts: the largest id + 1, for want of a better source (--experts)");
    }
    if (!routing.top_k)
      routing.notes.emplace_back("tokens are not known: loads without top_k (--top-k)");
    for (const auto& [layer, counts] : trace.counts)
      routing.layers.push_back(finish(layer, counts, routing, trace.log));
    routing.problems = trace.log.problems();
    return routing;
  }

  static std::size_t largest_id(const Trace& trace) {
    std::int64_t largest = 0;
    for (const auto& [layer, counts] : trace.counts)
      largest = std::max(largest, counts.rbegin()->first);
    return static_cast<std::size_t>(largest);
  }

  RecordedLayer finish(const LayerName& name, const std::map<std::int64_t, std::int64_t>& loads,
                       const RecordedRouting& routing, ProblemLog& log) const {
    RecordedLayer layer{name, std::nullopt, 0, std::vector<std::int64_t>(routing.experts)};
    for (const auto& [expert, count] : loads) {
      layer.counts[static_cast<std::size_t>(expert)] = count;
      layer.assignments = std::min(max_assignments + 1, layer.assignments + count);
    }
    if (layer.assignments > max_assignments) {
      throw InputError({.what = "cannot add up the recording",
                        .where = lines_.path(),
                        .why = "the loads of layer " + to_text(name) + " sum to more than 2^53",
                        .right = "give loads whose sum is exact as a double"});
    }
    if (!routing.top_k) return layer;
    const auto top_k = static_cast<std::int64_t>(*routing.top_k);
    layer.tokens = layer.assignments / top_k;
    const std::int64_t largest = *std::max_element(layer.counts.begin(), layer.counts.end());
    if (layer.assignments % top_k != 0 || largest > *layer.tokens) {
      log.add(ProblemKind::uneven_load, 0,
              "layer " + to_text(name) + ": " + std::to_string(layer.assignments) +
                  " assignments, the largest load " + std::to_string(largest) + ", top_k " +
                  std::to_string(top_k));
    }
    return layer;
  }

  LineReader& lines_;
  const ReadSettings& settings_;
  std::map<std::string, Trace> traces_;
  std::vector<std::string> order_;  ///< of first appearance
  ProblemLog file_log_;
};

}  // namespace

std::vector<std::string> split_csv(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quoted && line[i] == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[++i];
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += line[i];
    }
  }
  return fields;
}

bool is_load_header(const std::vector<std::string>& columns) {
  return Columns::find(columns, "expert") >= 0 &&
         (Columns::find(columns, "count") >= 0 || Columns::find(columns, "count_topk") >= 0);
}

std::vector<RecordedRouting> read_load_csv(LineReader& lines, const ReadSettings& settings) {
  return LoadCsvReader(lines, settings).read();
}

}  // namespace ballast::sim
