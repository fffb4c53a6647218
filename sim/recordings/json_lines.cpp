#include "sim/recordings/json_lines.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/input_error.h"
#include "sim/recordings/row_tally.h"
#include "sim/text/nearest.h"
#include "sim/text/printable.h"

namespace ballast::sim {
namespace {

using nlohmann::json;

/// What a meta line says about all rows.
struct Meta {
  std::optional<std::size_t> experts;
  std::optional<std::size_t> top_k;
  std::int64_t line = 0;
};

bool has_type(const json& object, const char* type) {
  const auto found = object.find("type");
  return found != object.end() && *found == type;
}

std::string place(const std::string& path, std::int64_t line) {
  return path + ":" + std::to_string(line);
}

std::optional<std::size_t> meta_number(const json& object, const char* field, std::size_t largest,
                                       const std::string& where) {
  const auto found = object.find(field);
  if (found == object.end() || found->is_null()) return std::nullopt;
  const bool fits = found->is_number_unsigned() && found->get<std::uint64_t>() >= 1 &&
                    found->get<std::uint64_t>() <= largest;
  if (!fits) {
    throw InputError(
        {.what = "cannot use the meta line",
         .where = where,
         .why = std::string("'") + field + "' is " +
                printable(found->dump(-1, ' ', false, json::error_handler_t::replace), 40),
         .right = "give an integer from 1 to " + std::to_string(largest)});
  }
  return found->get<std::size_t>();
}

Meta parse_meta(const json& object, const std::string& path, std::int64_t line) {
  const std::string where = place(path, line);
  return {.experts = meta_number(object, "num_experts", max_experts, where),
          .top_k = meta_number(object, "top_k", max_experts, where),
          .line = line};
}

std::optional<Meta> find_meta(std::span<const Line> head, const std::string& path) {
  for (const Line& line : head) {
    const auto object = parse_object(line.text);
    if (object && has_type(*object, "meta")) return parse_meta(*object, path, line.number);
  }
  return std::nullopt;
}

/// The commonest number of experts in a row among the first lines: a lone faulty row does not
/// decide it.
std::optional<std::size_t> common_row_length(std::span<const Line> head, const RowSchema& schema) {
  std::map<std::size_t, int> lengths;
  for (const Line& line : head) {
    const auto object = parse_object(line.text);
    const json* experts = object ? find_field(*object, schema.experts) : nullptr;
    if (experts != nullptr) ++lengths[experts->is_array() ? experts->size() : 1];
  }
  lengths.erase(0);
  const auto best =
      std::max_element(lengths.begin(), lengths.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return best == lengths.end() ? std::nullopt : std::optional(best->first);
}

/// One pass over the rows of a file.
class JsonLinesReader {
 public:
  JsonLinesReader(LineReader& lines, std::span<const Line> head, const RowSchema& schema,
                  const ReadSettings& settings)
      : lines_(lines),
        schema_(schema),
        meta_(find_meta(head, lines.path()).value_or(Meta{})),
        tally_(tally_settings(head, settings), lines.path()) {}

  RecordedRouting read() {
    for (Line line; lines_.next(line);) add(line);
    RecordedRouting routing = tally_.finish();
    routing.notes.insert(routing.notes.end(), notes_.begin(), notes_.end());
    return routing;
  }

 private:
  TallySettings tally_settings(std::span<const Line> head, const ReadSettings& settings) {
    overruled(settings.experts, meta_.experts, "experts");
    overruled(settings.top_k, meta_.top_k, "experts a token");
    TallySettings result{.experts = settings.experts ? settings.experts : meta_.experts,
                         .top_k = settings.top_k ? settings.top_k : meta_.top_k,
                         .skip_warm_up = settings.skip_warm_up,
                         .on_row = settings.on_row};
    if (!result.top_k) result.top_k = common_row_length(head, schema_);
    if (schema_.layer.empty())
      notes_.emplace_back("no field names the layer: all rows are taken as layer 0");
    return result;
  }

  void overruled(std::optional<std::size_t> given, std::optional<std::size_t> read,
                 const char* what) {
    if (!given || !read || *given == *read) return;
    notes_.push_back("the meta line says " + std::to_string(*read) + " " + what + "; " +
                     std::to_string(*given) + " was asked for");
  }

  void add(const Line& line) {
    if (is_blank(line.text)) return tally_.log().add(ProblemKind::blank_line, line.number, "");
    const auto object = parse_object(line.text);
    if (!object) {
      const ProblemKind kind = line.ended ? ProblemKind::not_json : ProblemKind::truncated_line;
      return tally_.log().add(kind, line.number, printable(line.text, 40));
    }
    if (has_type(*object, "meta")) return add_meta(*object, line.number);
    if (is_other_record(*object)) {
      return tally_.log().add(ProblemKind::unknown_record, line.number, printable(line.text, 40));
    }
    add_row(*object, line.number);
  }

  /// Rows of typed logs say that they are routes; what has another type and no experts is none.
  bool is_other_record(const json& object) const {
    return object.contains("type") && !has_type(object, "route") &&
           find_field(object, schema_.experts) == nullptr;
  }

  void add_meta(const json& object, std::int64_t line) {
    if (line == meta_.line) return;
    const Meta other = parse_meta(object, lines_.path(), line);
    const bool same = other.experts == meta_.experts && other.top_k == meta_.top_k;
    if (meta_.line > 0 && !same) {
      throw InputError({.what = "cannot add up the recording",
                        .where = place(lines_.path(), line),
                        .why = "this meta line has another number of experts or top_k than line " +
                               std::to_string(meta_.line),
                        .right = "give one model a file"});
    }
    tally_.log().add(ProblemKind::repeated_meta, line, "");
  }

  void add_row(const json& object, std::int64_t line) {
    try {
      tally_.add(parse_row(object, schema_), line);
    } catch (const RowFault& fault) {
      tally_.log().add(fault.kind, line, fault.what());
    }
  }

  LineReader& lines_;
  const RowSchema& schema_;
  Meta meta_;
  std::vector<std::string> notes_;
  RowTally tally_;
};

}  // namespace

std::optional<json> parse_object(const std::string& line) {
  json value = json::parse(line, nullptr, false);
  if (!value.is_object()) return std::nullopt;
  return value;
}

std::optional<RowSchema> known_schema(const json& object) {
  if (object.contains("topk_ids") || has_type(object, "meta")) {
    return RowSchema{.layer = "layer",
                     .experts = "topk_ids",
                     .token = "token_idx",
                     .weights = "topk_weights",
                     .sequence = {"req_id"}};
  }
  if (object.contains("layer") && object.contains("experts")) {
    return RowSchema{.layer = "layer",
                     .experts = "experts",
                     .token = object.contains("token_idx") ? "token_idx" : "",
                     .weights = "gating_probs",
                     .sequence = {"dataset", "problem_id"}};
  }
  return std::nullopt;
}

RecordedRouting read_json_lines(LineReader& lines, std::span<const Line> head,
                                const RowSchema& schema, const ReadSettings& settings) {
  return JsonLinesReader(lines, head, schema, settings).read();
}

}  // namespace ballast::sim
