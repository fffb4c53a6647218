#include "sim/recordings/problem_log.h"

#include <algorithm>
#include <array>

#include "sim/text/printable.h"

namespace ballast::sim {
namespace {

struct Wording {
  ProblemKind kind;
  std::string_view name;
  std::string_view phrase;
  std::string_view noun;
  bool counted;
};

constexpr std::array wordings = {
    Wording{ProblemKind::blank_line, "blank_line", "blank", "line", false},
    Wording{ProblemKind::not_json, "not_json", "not a JSON object", "line", false},
    Wording{ProblemKind::truncated_line, "truncated_line", "cut off at the end of the file", "line",
            false},
    Wording{ProblemKind::unknown_record, "unknown_record", "a record of another kind", "line",
            false},
    Wording{ProblemKind::repeated_meta, "repeated_meta",
            "another meta line, so perhaps one log appended to another", "line", false},
    Wording{ProblemKind::bad_field, "bad_field", "a field missing or wrong", "row", false},
    Wording{ProblemKind::wrong_expert_count, "wrong_expert_count", "a wrong number of experts",
            "row", false},
    Wording{ProblemKind::expert_out_of_range, "expert_out_of_range", "an expert id out of range",
            "row", false},
    Wording{ProblemKind::repeated_expert, "repeated_expert", "an expert chosen twice", "row",
            false},
    Wording{ProblemKind::weight_count, "weight_count", "weights that do not match the experts",
            "row", false},
    Wording{ProblemKind::weight_sum, "weight_sum", "weights that are no shares of one", "row",
            true},
    Wording{ProblemKind::token_goes_back, "token_goes_back",
            "the token index goes back: another pass, or one log appended to another", "row", true},
    Wording{ProblemKind::duplicate_record, "duplicate_record", "a record that was there before",
            "row", false},
    Wording{ProblemKind::missing_cells, "missing_cells", "missing", "cell", false},
    Wording{ProblemKind::warm_up, "warm_up", "identical rows at the front", "row", true},
    Wording{ProblemKind::identical_rows, "identical_rows", "all rows are identical", "row", true},
    Wording{ProblemKind::uneven_load, "uneven_load", "loads that no routing gives", "layer", true},
};

const Wording& wording(ProblemKind kind) {
  return wordings[static_cast<std::size_t>(kind)];
}

consteval bool in_order_of_declaration() {
  for (std::size_t i = 0; i < wordings.size(); ++i) {
    if (static_cast<std::size_t>(wordings[i].kind) != i) return false;
  }
  return true;
}
static_assert(in_order_of_declaration());

std::string sentence(const Problem& problem, const std::string& detail) {
  const Wording& words = wording(problem.kind);
  std::string text = counted_noun(problem.count, words.noun) + ": " + std::string(words.phrase);
  text += problem.counted ? "; counted" : "; not counted";
  if (problem.lines.empty() && detail.empty()) return text;
  text += problem.count > 1 ? "; first" : "";
  if (!problem.lines.empty()) {
    text += (problem.count > 1 ? " line " : "; line ") + std::to_string(problem.lines[0]);
  }
  if (!detail.empty()) text += ": " + printable(detail);
  return text;
}

}  // namespace

std::string_view name(ProblemKind kind) {
  return wording(kind).name;
}

std::string counted_noun(std::int64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

void ProblemLog::add(ProblemKind kind, std::int64_t line, const std::string& detail) {
  add(kind, 1, std::span(&line, line > 0 ? 1 : 0), detail);
}

void ProblemLog::add(ProblemKind kind, std::int64_t count, std::span<const std::int64_t> lines,
                     const std::string& detail) {
  const auto [place, is_new] = by_kind_.try_emplace(kind);
  Problem& problem = place->second.problem;
  if (is_new) {
    problem.kind = kind;
    problem.counted = wording(kind).counted;
    place->second.first_detail = detail;
  }
  problem.count += count;
  for (const std::int64_t line : lines) {
    if (problem.lines.size() < max_lines) problem.lines.push_back(line);
  }
}

void ProblemLog::add(Problem problem) {
  if (problem.lines.size() > max_lines) problem.lines.resize(max_lines);
  single_.push_back(std::move(problem));
}

std::vector<Problem> ProblemLog::problems() const {
  std::vector<Problem> all;
  for (const auto& [kind, entry] : by_kind_) {
    all.push_back(entry.problem);
    all.back().message = sentence(entry.problem, entry.first_detail);
  }
  all.insert(all.end(), single_.begin(), single_.end());
  return all;
}

}  // namespace ballast::sim
