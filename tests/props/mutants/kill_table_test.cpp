#include "props/mutants/kill_table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "props/command/mutant_report.h"
#include "sim/threads/thread_pool.h"
#include "tests/props/support/fakes.h"

namespace ballast::props {
namespace {

using test::FakeSubject;

/// A subject that answers a forward with the given number of rows too many.
Mutant rows_too_many(const std::string& name, std::size_t from_logit) {
  return {.name = name,
          .description = "Answers too many rows.",
          .law = "made-up.rows",
          .faults = {"M82"},
          .make =
              [=] {
                return std::make_unique<FakeSubject>(
                    std::set{Capability::route}, [=](const Request& request) -> Answer {
                      const auto values = std::get<Forward>(request).logits.values();
                      const bool wrong = !values.empty() && std::ranges::max(values) >= float(from_logit);
                      return Routed{{wrong ? 2u : 1u, {0}}, {}};
                    });
              },
          .equivalent = false};
}

constexpr std::size_t always = 0, rarely = 15, never = 1000;

Law one_row() {
  return test::law_of("made-up.rows", [](Subject& subject, const Case& input) {
    for (const Request& request : input.history) {
      if (std::get<Routed>(subject.ask(request)).indices.size() > 1) return test::broken();
    }
    return test::holds();
  });
}
Law of_nothing() {
  return test::law_of("made-up.nothing", [](Subject&, const Case&) { return test::holds(); });
}
Law of_groups() {
  Law law = test::law_of("made-up.groups", [](Subject&, const Case&) { return test::broken(); });
  law.needs = {Capability::groups};
  return law;
}

/// Mutants that are held against laws.
struct Held {
  std::vector<Law> laws = {one_row(), of_groups()};
  std::vector<Mutant> mutants;
  KillSettings settings{.seed = 1, .seeds = 5, .cases = 300};

  KillTable table(const Executor& executor = serial_executor()) const {
    return run_mutants(laws, mutants, settings, executor);
  }
  Verdict verdict(bool every_law = false) const {
    return verdict_of(table(), mutants, every_law);
  }
  std::string text(const Executor& executor = serial_executor()) const {
    const KillTable result = table(executor);
    const KillContext context{.mutants = mutants, .settings = settings};
    std::ostringstream out;
    write_kill_table(result, context, out);
    return out.str() + kill_table_json(result, context).dump(2);
  }
};

TEST(KillTable, SaysWhichLawKillsAMutantAndHowFast) {
  const Held held{.mutants = {rows_too_many("always", always), rows_too_many("rarely", rarely)}};
  const KillTable table = held.table();
  for (const MutantResult& result : table.mutants) {
    ASSERT_EQ(result.kills.size(), 1u);
    EXPECT_EQ(result.kills[0].law, "made-up.rows");
    EXPECT_TRUE(result.killed());
    EXPECT_EQ(result.cases.size(), 5u);
  }
  EXPECT_EQ(table.mutants[0].median_cases(), 1.0);
  EXPECT_GT(table.mutants[1].median_cases(), 1.0);
  ASSERT_TRUE(table.mutants[0].smallest);
  EXPECT_EQ(table.mutants[0].smallest->extent.tokens, 1u);
  EXPECT_EQ(table.mutants[0].smallest->extent.experts, 1u);
  EXPECT_EQ(table.mutants[0].smallest->extent.requests, 1u);
}

TEST(KillTable, NamesTheSeedsThatAMutantSurvives) {
  const Held held{.mutants = {rows_too_many("always", always), rows_too_many("never", never)},
                .settings = {.seed = 3, .seeds = 2, .cases = 60}};
  const KillTable table = held.table();
  EXPECT_EQ(table.mutants[1].survived(held.settings), (std::vector<std::uint64_t>{3, 4}));
  EXPECT_FALSE(table.mutants[1].median_cases());
  EXPECT_EQ(held.verdict(), Verdict::fail);
  EXPECT_NE(held.text().find("SURVIVES under seed 3, 4"), std::string::npos);
}

TEST(KillTable, FailsForAnEquivalentMutantThatIsKilledAndIsUnknownWithoutAnother) {
  Held held{.mutants = {rows_too_many("never", never)}};
  held.mutants[0].equivalent = true;
  EXPECT_EQ(held.verdict(), Verdict::unknown);
  held.mutants.push_back(rows_too_many("always", always));
  EXPECT_EQ(held.verdict(), Verdict::pass);
  held.mutants[1].equivalent = true;
  EXPECT_EQ(held.verdict(), Verdict::fail);
}

TEST(KillTable, FailsForALawThatKillsNothingWhereEveryLawHasTo) {
  Held held{.mutants = {rows_too_many("always", always)}};
  held.laws = {one_row(), of_nothing()};
  EXPECT_EQ(held.verdict(false), Verdict::pass);
  EXPECT_EQ(held.verdict(true), Verdict::fail);
  EXPECT_NE(held.text().find("1 kill none\n    made-up.nothing\n"), std::string::npos);
}

TEST(KillTable, IsTheSameOnAnyNumberOfThreadsAndEightyColumnsWide) {
  Held held;
  for (const char* name : {"a", "b", "c", "d", "a-mutant-with-a-name-that-is-rather-long-for-one"}) {
    held.mutants.push_back(rows_too_many(name, held.mutants.size() * 3));
  }
  const std::string text = held.text();
  EXPECT_EQ(held.text(sim::ThreadPool(3)), text);
  std::istringstream lines(text.substr(0, text.find("\n{")));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 82u) << line;
}

TEST(KillTable, HasACanaryThatSings) {
  const KillTable table = Held{.mutants = {rows_too_many("always", always)}}.table();
  EXPECT_TRUE(table.canary.sings());
  EXPECT_GT(table.canary.broken, 50u);
  KillTable silent = table;
  silent.canary.broken = 0;
  EXPECT_FALSE(silent.canary.sings());
  const std::vector<Mutant> mutants = {rows_too_many("always", always)};
  EXPECT_EQ(verdict_of(silent, mutants, false), Verdict::unknown);
}

}  // namespace
}  // namespace ballast::props
