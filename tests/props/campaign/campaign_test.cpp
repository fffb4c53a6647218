#include "props/campaign/campaign.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "props/campaign/report.h"
#include "props/protocol/requests_json.h"
#include "sim/input_error.h"
#include "sim/threads/thread_pool.h"
#include "tests/props/support/fakes.h"
#include "tests/props/support/temporary_folder.h"

namespace ballast::props {
namespace {

using test::broken;
using test::fake_subjects;
using test::holds;
using test::law_below;
using test::law_of;
using test::outcome_of;
using test::TemporaryFolder;
using Kind = Outcome::Kind;

/// The edge "even" of cases with an even salt.
std::set<std::string> evenness(const Case& input) {
  if (input.salt % 2 == 0) return {"even"};
  return {};
}

Law law_always(const char* id, Kind kind) {
  return law_of(id, [kind](Subject&, const Case&) { return outcome_of(kind); });
}

CampaignResult campaign(const std::vector<Law>& laws, CampaignSettings settings = {}) {
  auto subjects = fake_subjects();
  return run_campaign(laws, subjects, settings, serial_executor());
}

Verdict verdict_of(const Law& law) {
  return campaign({law}).laws.at(0).verdict;
}

std::string json_of(const CampaignResult& result, const std::vector<Law>& laws) {
  return report_json(result, {.laws = laws, .subject_options = {}}).dump(2);
}

TEST(Campaign, ALawPassesFailsOrIsUnknown) {
  EXPECT_EQ(verdict_of(law_below("a", 100)), Verdict::pass);
  EXPECT_EQ(verdict_of(law_below("a", 3)), Verdict::fail);
  EXPECT_EQ(verdict_of(law_always("a", Kind::discarded)), Verdict::unknown);
  EXPECT_EQ(verdict_of(law_always("a", Kind::unsupported)), Verdict::unknown);
}

TEST(Campaign, ALawThatDiscardsMostOfItsCasesIsUnknown) {
  const auto one_in = [](std::uint64_t n) {
    return law_of("a", [n](Subject&, const Case& input) {
      return outcome_of(input.salt % n == 0 ? Kind::holds : Kind::discarded);
    });
  };
  EXPECT_EQ(verdict_of(one_in(3)), Verdict::pass);
  EXPECT_EQ(verdict_of(one_in(50)), Verdict::unknown);
}

TEST(Campaign, ALawWhoseEdgeWasNeverMetIsUnknownAndSaysWhich) {
  Law law = law_of("a", [](Subject&, const Case& input) {
    return outcome_of(Kind::holds, evenness(input));
  });
  law.edges = {"even"};
  const LawResult met = campaign({law}).laws[0];
  EXPECT_EQ(met.verdict, Verdict::pass);
  EXPECT_GT(met.edges.at("even"), 50);
  EXPECT_LT(met.edges.at("even"), 150);
  law.edges = {"even", "odd one"};
  const LawResult missed = campaign({law}).laws[0];
  EXPECT_EQ(missed.verdict, Verdict::unknown);
  EXPECT_EQ(missed.reason, "never met: 'odd one'");
  EXPECT_FALSE(missed.skipped);
}

TEST(Campaign, ALawThatNeedsMoreThanTheSubjectCanIsSkipped) {
  Law law = law_below("a", 100);
  law.needs = {Capability::route, Capability::groups};
  const CampaignResult alone = campaign({law});
  EXPECT_EQ(alone.verdict, Verdict::unknown) << "nothing was tested";
  EXPECT_TRUE(alone.laws[0].skipped);
  EXPECT_EQ(alone.laws[0].cases, 0);
  EXPECT_EQ(alone.laws[0].reason, "the subject does not support groups");
  EXPECT_EQ(campaign({law, law_below("b", 100)}).verdict, Verdict::pass);
}

TEST(Campaign, TheWholeFailsOverUnknownOverPass) {
  const Law pass = law_below("p", 100), fail = law_below("f", 3), unknown = law_always("u", Kind::discarded);
  EXPECT_EQ(campaign({pass, fail, unknown}).verdict, Verdict::fail);
  EXPECT_EQ(campaign({pass, unknown}).verdict, Verdict::unknown);
  EXPECT_EQ(campaign({pass}).verdict, Verdict::pass);
  EXPECT_EQ(campaign({}).verdict, Verdict::unknown);
}

TEST(Campaign, AFailureIsTheFirstFailingCaseShrunkToItsCore) {
  const Law law = law_below("a", 15);
  const LawResult result = campaign({law}).laws[0];
  ASSERT_TRUE(result.failure);
  const std::size_t index = result.failure->reproduction.index;
  EXPECT_EQ(result.cases, static_cast<std::int64_t>(index) + 1);
  for (std::size_t i = 0; i <= index; ++i)
    EXPECT_EQ(test::largest_logit(draw_case(law, 1, i)) >= 15, i == index);
  const auto& forward = std::get<Forward>(result.failure->smallest.history.at(0));
  EXPECT_EQ(forward.logits, Matrix<float>(1, 1, 15.0f));
  EXPECT_FALSE(result.failure->flaky);
}

TEST(Campaign, NothingReportedDependsOnTheNumberOfThreads) {
  Law edges = law_of("edges", [](Subject&, const Case& input) {
    return outcome_of(input.salt % 3 == 0 ? Kind::discarded : Kind::holds, evenness(input));
  });
  const std::vector<Law> laws = {law_below("often", 14), edges, law_below("rare", 15.875f), law_below("never", 100)};
  std::vector<std::string> reports;
  for (const std::size_t threads : {1, 2, 5}) {
    auto subjects = fake_subjects();
    const sim::ThreadPool pool(threads);
    reports.push_back(json_of(run_campaign(laws, subjects, {.cases = 330}, pool), laws));
  }
  EXPECT_EQ(reports[1], reports[0]);
  EXPECT_EQ(reports[2], reports[0]);
}

TEST(Campaign, ACaseThatIsReproducedGoesToTheSameMinimalCase) {
  const std::vector<Law> laws = {law_below("a", 15.5f)};
  const LawResult found = campaign(laws, {.seed = 9}).laws[0];
  const auto which = parse_reproduction(found.failure->reproduction.text());
  CampaignSettings again{.seed = which->seed, .cases = 1, .time_budget = {}, .only_case = which->index};
  const LawResult reproduced = campaign(laws, again).laws[0];
  EXPECT_EQ(reproduced.cases, 1);
  EXPECT_EQ(case_json(reproduced.failure->smallest), case_json(found.failure->smallest));
  again.only_case = 0;
  while (test::largest_logit(draw_case(laws[0], 9, *again.only_case)) >= 15.5f) ++*again.only_case;
  EXPECT_EQ(campaign(laws, again).laws[0].verdict, Verdict::pass);
}

TEST(Campaign, AStoredFailureComesFirstNextTimeAndStays) {
  const TemporaryFolder folder;
  const FailureStore store(folder.path() / "failures");
  const LawResult found = campaign({law_below("a", 15)}, {.store = &store}).laws[0];
  EXPECT_GT(found.cases, 1);
  ASSERT_TRUE(std::filesystem::exists(found.failure->stored_in));

  const LawResult again = campaign({law_below("a", 15)}, {.seed = 2, .store = &store}).laws[0];
  EXPECT_EQ(again.cases, 1);
  EXPECT_EQ(again.replayed, 1);
  EXPECT_EQ(again.failure->reproduction, found.failure->reproduction) << "of the seed it was found with";
  EXPECT_EQ(case_json(again.failure->smallest), case_json(found.failure->smallest));

  const LawResult mended = campaign({law_below("a", 100)}, {.store = &store}).laws[0];
  EXPECT_EQ(mended.verdict, Verdict::pass);
  EXPECT_EQ(mended.cases, 201);
  EXPECT_TRUE(std::filesystem::exists(found.failure->stored_in));
  EXPECT_EQ(campaign({law_below("b", 100)}, {.store = &store}).laws[0].replayed, 0) << "of another law";
}

TEST(Campaign, AStoredFileThatIsNoCaseIsBadInput) {
  const TemporaryFolder folder;
  const FailureStore store(folder.path() / "failures");
  std::filesystem::create_directories(folder.path() / "failures");
  std::ofstream(folder.path() / "failures" / "x.json") << R"({"law":"a","seed":"1","index":0})";
  EXPECT_THROW(campaign({law_below("a", 100)}, {.store = &store}), sim::InputError);
}

TEST(Campaign, AStoreThatCannotBeWrittenIsANoteAndNoError) {
  const FailureStore store("/proc/nowhere/failures");
  const CampaignResult result = campaign({law_below("a", 3)}, {.store = &store});
  EXPECT_EQ(result.verdict, Verdict::fail);
  ASSERT_EQ(result.notes.size(), 1u);
}

/// The files of cases that are running, with their text.
std::vector<std::string> running_files(const std::filesystem::path& folder) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "running")) {
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    out.push_back(text.str());
  }
  return out;
}

TEST(Campaign, EveryCaseIsOnDiskWhileItRunsAndGoneAfterwards) {
  const TemporaryFolder folder;
  const FailureStore store(folder.path() / "failures");
  std::int64_t seen = 0;
  const Law law = law_of("a", [&](Subject&, const Case& input) {
    const auto files = running_files(folder.path());
    EXPECT_EQ(files.size(), 1u);
    EXPECT_EQ(Json::parse(files.at(0)).at("case"), case_json(input));
    ++seen;
    return holds();
  });
  campaign({law}, {.cases = 30, .store = &store, .note_running = true});
  EXPECT_EQ(seen, 30);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "running"));
}

TEST(Campaign, WhatACampaignThatWasCutOffHadRunningIsRunFirst) {
  const TemporaryFolder folder;
  const FailureStore store(folder.path() / "failures");
  const Law law = law_below("a", 15);
  const auto failing = campaign({law}).laws[0].failure->reproduction;
  store.note_running(0, failing, draw_case(law, failing.seed, failing.index));
  // As if by a process that is no more: process numbers end well below this one.
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "running"))
    std::filesystem::rename(entry.path(), folder.path() / "running" / "2147483646-0.json");
  const LawResult result = campaign({law}, {.seed = 5, .store = &store}).laws[0];
  EXPECT_EQ(result.replayed, 1);
  EXPECT_EQ(result.failure->reproduction, failing);
  EXPECT_EQ(std::get<Forward>(result.failure->smallest.history.at(0)).logits, Matrix<float>(1, 1, 15.0f));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "running"));
}

TEST(Campaign, AFailureThatDoesNotComeAgainIsCalledFlaky) {
  int calls = 0;
  const Law law = law_of("a", [&](Subject&, const Case&) { return ++calls == 4 ? broken() : holds(); });
  const LawResult result = campaign({law}).laws[0];
  EXPECT_EQ(result.verdict, Verdict::fail);
  EXPECT_TRUE(result.failure->flaky);
  EXPECT_EQ(case_json(result.failure->smallest), case_json(draw_case(law, 1, 3)));
}

TEST(Campaign, ASubjectThatFailsBreaksTheLawAndTheOthersStillRun) {
  SubjectPool subjects([] {
    return std::make_unique<test::FakeSubject>(std::set{Capability::route}, [](const Request& request) -> Answer {
      const auto* forward = std::get_if<Forward>(&request);
      if (forward != nullptr && forward->logits.rows() >= 3) throw SubjectFailure("the subject exited", "oops\n");
      return Done{};
    });
  });
  const Law asking = law_of("asks", [](Subject& subject, const Case& input) {
    run(subject, input);
    return holds();
  });
  const std::vector<Law> laws = {asking, law_below("b", 100)};
  const CampaignResult result = run_campaign(laws, subjects, {}, serial_executor());
  EXPECT_EQ(result.verdict, Verdict::fail);
  EXPECT_EQ(result.laws[1].verdict, Verdict::pass);
  const Failure& failure = *result.laws[0].failure;
  EXPECT_TRUE(failure.result.subject_failed);
  EXPECT_EQ(failure.result.stderr_tail, "oops\n");
  EXPECT_EQ(std::get<Forward>(failure.smallest.history.at(0)).logits.rows(), 3u);
}

class RudeSubject final : public Subject {
 public:
  const Hello& hello() override { throw SubjectFailure("the subject exited with status 127"); }
  Answer open(const Open&) override { return Done{}; }
  Answer ask(const Request&) override { return Done{}; }
};

TEST(Campaign, ASubjectThatDoesNotIntroduceItselfFailsThatLaw) {
  SubjectPool subjects([] { return std::make_unique<RudeSubject>(); });
  const std::vector<Law> laws = {law_below("a", 100)};
  const CampaignResult result = run_campaign(laws, subjects, {}, serial_executor());
  EXPECT_EQ(result.verdict, Verdict::fail);
  EXPECT_EQ(result.laws[0].id, "protocol.hello");
  EXPECT_EQ(result.laws[0].failure->result.outcome.seen, "the subject exited with status 127");
  EXPECT_EQ(result.laws[1].verdict, Verdict::unknown);
}

TEST(Campaign, ATimeBudgetThatIsOverLeavesTheRestUnknown) {
  const CampaignResult result =
      campaign({law_below("a", 100)}, {.cases = std::nullopt, .time_budget = std::chrono::duration<double>(1e-9)});
  EXPECT_EQ(result.laws[0].verdict, Verdict::unknown);
  EXPECT_EQ(result.laws[0].reason, "no case was run");
}

TEST(Campaign, WaitsForASubjectThatHangsOnlyAFewTimes) {
  int timeouts = 0;
  const auto hanging = [&](Subject&, const Case&) -> Outcome {
    ++timeouts;
    SubjectFailure failure("the subject gave no answer within 10 s");
    failure.timed_out = true;
    throw failure;
  };
  std::vector<Law> laws;
  for (const char* id : {"a", "b", "c", "d", "e", "f"}) laws.push_back(law_of(id, hanging));
  EXPECT_EQ(campaign(laws).verdict, Verdict::fail);
  EXPECT_LE(timeouts, 6 + 4);
}

}  // namespace
}  // namespace ballast::props
