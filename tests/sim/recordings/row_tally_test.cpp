#include "sim/recordings/row_tally.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

namespace ballast::sim {
namespace {

RoutingRow row(std::int64_t token, std::vector<std::int64_t> experts) {
  return {.sequence = "", .layer = 0, .token = token, .experts = std::move(experts), .weights = {}};
}

/// Nothing is dropped in silence: a row is counted, or it is in a problem that says it is not.
RC_GTEST_PROP(RowTally, EveryRowIsCountedOrIsInAProblem, ()) {
  std::int64_t told = 0;
  RowTally tally({.experts = 4,
                  .top_k = 2,
                  .skip_warm_up = *rc::gen::arbitrary<bool>(),
                  .on_row = [&](const RoutingRow&) { ++told; }},
                 "file");
  const auto rows = *rc::gen::container<std::vector<std::pair<int, std::vector<int>>>>(
      rc::gen::pair(rc::gen::inRange(0, 6),
                    rc::gen::container<std::vector<int>>(2, rc::gen::inRange(-1, 5))));
  std::int64_t line = 0;
  for (const auto& [token, experts] : rows)
    tally.add(row(token, {experts.begin(), experts.end()}), ++line);
  const RecordedRouting routing = tally.finish();
  std::int64_t known = 0;
  for (const RecordedLayer& layer : routing.layers) {
    known += *layer.tokens;
    RC_ASSERT(told == *layer.tokens + layer.warm_up_rows);
    RC_ASSERT(layer.assignments == 2 * *layer.tokens);
    RC_ASSERT(*std::min_element(layer.counts.begin(), layer.counts.end()) >= 0);
    RC_ASSERT(std::accumulate(layer.counts.begin(), layer.counts.end(), std::int64_t{0}) ==
              layer.assignments);
  }
  for (const Problem& problem : routing.problems) {
    if (!problem.counted && problem.kind != ProblemKind::missing_cells) known += problem.count;
  }
  RC_ASSERT(known == static_cast<std::int64_t>(rows.size()));
}

TEST(RowTally, TellsRowsThatWereTakenForDuplicatesWhenTheyAreNone) {
  std::vector<std::int64_t> told;
  RowTally tally({.experts = 9,
                  .top_k = 1,
                  .on_row = [&](const RoutingRow& each) { told.push_back(each.experts.front()); }},
                 "file");
  std::int64_t line = 0;
  for (const std::int64_t expert : {0, 1, 2}) tally.add(row(expert, {expert}), ++line);
  // The same again: duplicates. And a pass that begins alike and then is another.
  for (const std::int64_t expert : {0, 1, 2}) tally.add(row(expert, {expert}), ++line);
  tally.add(row(0, {0}), ++line);
  tally.add(row(1, {7}), ++line);
  const RecordedRouting routing = tally.finish();
  EXPECT_EQ(told, (std::vector<std::int64_t>{0, 1, 2, 0, 7}));
  EXPECT_EQ(routing.layers[0].tokens, 5);
}

TEST(RowTally, ALayerOfIdenticalRowsAloneIsKept) {
  RowTally tally({.experts = 4, .top_k = 1, .skip_warm_up = true}, "file");
  for (std::int64_t token = 0; token < 100; ++token) tally.add(row(token, {2}), token + 1);
  const RecordedRouting routing = tally.finish();
  EXPECT_EQ(routing.layers[0].counts[2], 100);
  ASSERT_EQ(routing.problems.size(), 1u);
  EXPECT_EQ(routing.problems[0].kind, ProblemKind::identical_rows);
}

TEST(RowTally, AWarmUpInPassesIsLeftOutAsAWhole) {
  RowTally tally({.experts = 4, .top_k = 1, .skip_warm_up = true}, "file");
  std::int64_t line = 0;
  for (int pass = 0; pass < 3; ++pass) {
    for (std::int64_t token = 0; token < 80; ++token) tally.add(row(token, {2}), ++line);
  }
  for (const std::int64_t expert : {0, 1, 2}) tally.add(row(expert, {expert}), ++line);
  const RecordedRouting routing = tally.finish();
  EXPECT_EQ(routing.layers[0].counts, (std::vector<std::int64_t>{1, 1, 1, 0}));
}

}  // namespace
}  // namespace ballast::sim
