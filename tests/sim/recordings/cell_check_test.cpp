#include "sim/recordings/cell_check.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ballast::sim {
namespace {

RoutingRow row(std::int64_t token, std::int64_t expert, std::int64_t layer = 0,
               const std::string& sequence = "") {
  return {.sequence = sequence, .layer = layer, .token = token, .experts = {expert}, .weights = {}};
}

/// Rows that are counted in the end, in any order of decision.
std::int64_t counted(const std::vector<RoutingRow>& rows, ProblemLog& log) {
  CellCheck cells;
  std::int64_t total = 0;
  std::int64_t line = 0;
  for (const RoutingRow& one : rows) {
    const auto verdict = cells.observe(one, ++line, false, log);
    total += (verdict.counts ? 1 : 0) + (verdict.released ? verdict.released->rows : 0);
  }
  cells.finish(log);
  return total;
}

std::int64_t count_of(const ProblemLog& log, ProblemKind kind) {
  std::int64_t count = 0;
  for (const Problem& problem : log.problems()) count += problem.kind == kind ? problem.count : 0;
  return count;
}

TEST(CellCheck, CountsRowsInOrderWithoutAWord) {
  ProblemLog log;
  EXPECT_EQ(counted({row(0, 1), row(1, 1), row(0, 2, 1), row(1, 2, 1)}, log), 4);
  EXPECT_TRUE(log.problems().empty());
}

TEST(CellCheck, LeavesOutARecordWrittenTwice) {
  ProblemLog log;
  EXPECT_EQ(counted({row(0, 1), row(1, 2), row(1, 2), row(2, 3)}, log), 3);
  EXPECT_EQ(count_of(log, ProblemKind::duplicate_record), 1);
}

TEST(CellCheck, LeavesOutACopyThatIsCutOff) {
  ProblemLog log;
  EXPECT_EQ(counted({row(0, 1), row(1, 2), row(2, 3), row(0, 1), row(1, 2)}, log), 3);
  EXPECT_EQ(count_of(log, ProblemKind::duplicate_record), 2);
}

TEST(CellCheck, CountsTheRowsAfterACopy) {
  ProblemLog log;
  EXPECT_EQ(counted({row(0, 1), row(1, 2), row(0, 1), row(1, 2), row(2, 3)}, log), 3);
  EXPECT_EQ(count_of(log, ProblemKind::token_goes_back), 0);
}

TEST(CellCheck, CountsAnotherPassInFullThoughItBeginsTheSame) {
  ProblemLog log;
  EXPECT_EQ(counted({row(0, 1), row(1, 2), row(2, 3), row(0, 1), row(1, 2), row(2, 0)}, log), 6);
  EXPECT_EQ(count_of(log, ProblemKind::duplicate_record), 0);
  EXPECT_EQ(count_of(log, ProblemKind::token_goes_back), 1);
}

TEST(CellCheck, OnceThereAreTwoPassesEqualRowsAreNoDuplicates) {
  ProblemLog log;
  EXPECT_EQ(counted({row(0, 1), row(0, 2), row(0, 1), row(0, 2)}, log), 4);
}

TEST(CellCheck, SequencesAndLayersHaveIndicesOfTheirOwn) {
  ProblemLog log;
  EXPECT_EQ(
      counted({row(0, 1, 0, "a"), row(0, 1, 0, "b"), row(0, 1, 1, "a"), row(0, 1, 1, "b")}, log),
      4);
  EXPECT_TRUE(log.problems().empty());
}

TEST(CellCheck, ALayerThatASequenceLacksIsMissingAltogether) {
  ProblemLog log;
  counted({row(0, 1, 0, "a"), row(1, 1, 0, "a"), row(0, 1, 1, "a"), row(1, 1, 1, "a"),
           row(0, 1, 0, "b")},
          log);
  EXPECT_EQ(count_of(log, ProblemKind::missing_cells), 1);
}

TEST(CellCheck, ManySequencesWithMissingCellsAreSummedUp) {
  std::vector<RoutingRow> rows;
  for (int i = 0; i < 100; ++i) {
    rows.push_back(row(0, 1, 0, std::to_string(i)));
    rows.push_back(row(2, 1, 0, std::to_string(i)));
  }
  ProblemLog log;
  counted(rows, log);
  EXPECT_EQ(count_of(log, ProblemKind::missing_cells), 100);
  EXPECT_LT(log.problems().size(), 30u);
}

}  // namespace
}  // namespace ballast::sim
