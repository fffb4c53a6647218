#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/recordings/problem_log.h"
#include "sim/recordings/routing_row.h"

namespace ballast::sim {

/// Rows that are kept out of the counts until it is known whether they are duplicates.
struct HeldRows {
  std::int64_t rows = 0;
  std::vector<std::int64_t> counts;  ///< assignments per expert id, as long as the largest id needs
};

/// Checks the cells (sequence, layer, token) of a recording: each should be there once, in the
/// order of the tokens.
///
/// Where the index of a sequence goes back, the records from there on are either the same ones
/// again (a log appended to itself, or written twice) or another pass that starts a new count. They
/// are held back while each equals the earlier record of its cell. If that lasts until the index is
/// where it was, they are duplicates and are left out; at the first difference they are another
/// pass, and all count.
///
/// Memory: one entry for each (sequence, layer), and a fingerprint of 16 bytes for each row; both
/// are limited, and `incomplete` tells when a limit ended a check.
class CellCheck {
 public:
  static constexpr std::size_t max_groups = 1 << 16;
  static constexpr std::size_t max_fingerprints = 1 << 21;

  struct Verdict {
    bool counts = true;                ///< whether this row is to be counted now
    std::optional<HeldRows> released;  ///< earlier rows of the same layer to be counted now
  };

  /// Takes in a sound row. Problems found at once (going back, duplicates) go to the log.
  /// `warm_up`: the row is one of a long run of identical ones, whose equality says nothing.
  Verdict observe(const RoutingRow& row, std::int64_t line, bool warm_up, ProblemLog& log);

  /// Takes in a row that is there, but too faulty to be counted: its cell is not missing.
  void observe_faulty(const RoutingRow& row, std::int64_t line);

  /// After the last row: settles what is held (as duplicates), and reports the cells that are
  /// missing, one problem a sequence: layers with fewer rows than others, and gaps in the token
  /// index.
  void finish(ProblemLog& log);

  /// Whether a limit ended a check, and which; for a note.
  std::vector<std::string> incomplete() const;

 private:
  struct Record {
    std::int64_t token;
    std::uint64_t fingerprint;
  };
  struct Gap {
    std::int64_t first_token, last_token, line;
  };
  /// What is known about one (sequence, layer).
  struct Group {
    std::vector<Record> records;  ///< of the first pass, ascending by token
    std::int64_t rows = 0;        ///< different cells seen
    std::int64_t first_token = 0;
    std::int64_t last_token = -1;  ///< of the latest row
    std::int64_t largest_token = -1;
    std::int64_t last_line = 0;
    bool restarted = false;  ///< another pass began, so cells cannot be told apart
    bool replaying = false;  ///< the latest rows equal earlier ones
    HeldRows held;
    std::vector<std::int64_t> held_lines;  ///< the first few
    std::optional<Gap> first_gap;
  };
  /// A layer of a sequence with too few rows; `group` is null when it has none.
  struct Shortfall {
    const LayerName* layer;
    std::int64_t rows;
    const Group* group;
  };
  using Groups = std::map<std::pair<std::string, LayerName>, Group>;

  Group* find_group(const RoutingRow& row);
  void advance(Group& group, std::int64_t token, std::int64_t line);
  void remember(Group& group, const RoutingRow& row);
  Verdict replay(Group& group, const RoutingRow& row, std::int64_t line, ProblemLog& log);
  static Verdict restart(Group& group, const RoutingRow& row, std::int64_t line, ProblemLog& log);
  static bool equals_earlier(const Group& group, const RoutingRow& row);
  static void hold(Group& group, const RoutingRow& row, std::int64_t line);
  static void settle_duplicates(Group& group, ProblemLog& log);
  void report_missing(ProblemLog& log) const;
  /// Expected rows of every layer of a sequence, or nothing when its cells cannot be told apart.
  static std::optional<std::int64_t> expected_rows(Groups::const_iterator begin,
                                                   Groups::const_iterator end);
  std::vector<Shortfall> shortfalls(Groups::const_iterator begin, Groups::const_iterator end,
                                    std::int64_t expected) const;
  static std::string describe(const std::vector<Shortfall>& shortfalls, std::int64_t expected);
  static std::string describe_gap(const std::vector<Shortfall>& shortfalls);
  std::optional<Problem> missing_cells(Groups::const_iterator begin,
                                       Groups::const_iterator end) const;

  Groups groups_;
  std::set<LayerName> layers_;
  std::size_t fingerprints_ = 0;
  bool groups_full_ = false;
};

}  // namespace ballast::sim
