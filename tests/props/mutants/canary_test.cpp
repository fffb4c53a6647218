#include "props/mutants/canary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "props/campaign/campaign.h"
#include "props/campaign/report.h"
#include "tests/props/support/fakes.h"

namespace ballast::props {
namespace {

CampaignResult campaign(std::uint64_t seed, std::size_t cases) {
  SubjectPool subjects = test::fake_subjects();
  const std::vector<Law> laws = {canary()};
  return run_campaign(laws, subjects, {.seed = seed, .cases = cases}, serial_executor());
}

TEST(Canary, IsInNoListOfLaws) {
  EXPECT_EQ(std::ranges::count(all_laws(), canary().id, &Law::id), 0);
}

TEST(Canary, FailsOneCampaignOfASingleCaseInFour) {
  int failed = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    failed += campaign(seed, 1).verdict == Verdict::fail;
  }
  EXPECT_NEAR(failed, 400 * canary_share, 5 * std::sqrt(400 * canary_share * (1 - canary_share)));
}

TEST(Canary, IsReportedWithItsSmallestCase) {
  const CampaignResult result = campaign(1, 100);
  ASSERT_EQ(result.verdict, Verdict::fail);
  const Case& smallest = result.laws.at(0).failure->smallest;
  ASSERT_EQ(smallest.history.size(), 1u);
  const auto& logits = std::get<Forward>(smallest.history[0]).logits;
  ASSERT_EQ(logits.values().size(), 1u);
  EXPECT_EQ(logits(0, 0), canary_limit);
  const std::vector<Law> laws = {canary()};
  std::ostringstream report;
  write_report(result, {.laws = laws, .subject_options = {}, .colour = false}, report);
  EXPECT_NE(report.str().find(canary().id), std::string::npos);
  EXPECT_NE(report.str().find("--reproduce"), std::string::npos);
}

}  // namespace
}  // namespace ballast::props
