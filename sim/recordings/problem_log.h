#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ballast::sim {

/// What can be odd or wrong in a recording that is still worth reading.
enum class ProblemKind {
  blank_line,
  not_json,
  truncated_line,
  unknown_record,
  repeated_meta,
  bad_field,
  wrong_expert_count,
  expert_out_of_range,
  repeated_expert,
  weight_count,
  weight_sum,
  token_goes_back,
  duplicate_record,
  missing_cells,
  warm_up,
  identical_rows,
  uneven_load,
};

/// The kind as machines read it, "expert_out_of_range".
std::string_view name(ProblemKind kind);

/// Something a recording's reader noticed. Nothing is dropped without one.
struct Problem {
  ProblemKind kind{};
  std::int64_t count = 0;  ///< rows, records, lines or cells it is about
  bool counted = false;    ///< whether what it is about is in the load counts all the same
  std::vector<std::int64_t>
      lines;            ///< line numbers from 1, the first few; empty for files without lines
  std::string message;  ///< one line for people, with the first place in it
};

/// Gathers problems, so that a million faulty rows are one line of a report and constant memory.
class ProblemLog {
 public:
  static constexpr std::size_t max_lines = 10;  ///< of one problem

  /// One more row (record, line) of this kind; `line` 0 means that the file has no lines to speak
  /// of.
  void add(ProblemKind kind, std::int64_t line, const std::string& detail);
  /// `count` more rows of this kind, of which the first few are at `lines`.
  void add(ProblemKind kind, std::int64_t count, std::span<const std::int64_t> lines,
           const std::string& detail);
  /// A problem about many rows or cells at once, with a message of its own.
  void add(Problem problem);

  /// Kinds in the order of their declaration, then the rest in the order of their discovery.
  std::vector<Problem> problems() const;

 private:
  struct Entry {
    Problem problem;
    std::string first_detail;
  };
  std::map<ProblemKind, Entry> by_kind_;
  std::vector<Problem> single_;
};

/// "1 row", "2 rows".
std::string counted_noun(std::int64_t count, std::string_view noun);

}  // namespace ballast::sim
