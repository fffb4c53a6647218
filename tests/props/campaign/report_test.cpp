#include "props/campaign/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/props/support/fakes.h"

namespace ballast::props {
namespace {

using test::law_below;

struct Reported {
  std::vector<Law> laws;
  CampaignResult result;
  ReportContext context() const { return {.laws = laws, .subject_options = "--subject 'python3 my router.py'"}; }
};

Reported reported() {
  Law missing = law_below("other.groups", 3);
  missing.needs = {Capability::groups};
  Law met = law_below("some.edge", 100);
  met.edges = {"never"};
  Reported out{{law_below("some.pass", 100), law_below("some.below", 3), met, missing}, {}};
  auto subjects = test::fake_subjects();
  out.result = run_campaign(out.laws, subjects, {.cases = 100}, serial_executor());
  return out;
}

TEST(Report, TheTableAndTheFailureReadLikeThis) {
  const Reported campaign = reported();
  std::ostringstream out;
  write_report(campaign.result, campaign.context(), out);
  EXPECT_EQ(out.str(), R"(Law           Verdict  Cases  Discarded  Edges
some.pass     pass       100        0 %
some.below    fail         1        0 %
some.edge     unknown    100        0 %    0/1
other.groups  skipped      0

some.edge is unknown: never met: 'never'
other.groups is skipped: the subject does not support groups

some.below is broken
  Law       A law made up for a test holds.
  Where     request 1
  Expected  less
  Seen      more

  The smallest case
    1 layer, 1 expert, top 1, score logit*, renormalized*, balancer none
    0. train forward, layer 0, rank 0, 1 token, logits
       expert      0
       token 0     3
    (* another value here fails alike)

  Again: ballast check --reproduce some.below:1:0 --subject 'python3 my router.py'

fail: of 4 laws 1 pass, 1 fail, 1 unknown, 1 skipped; 201 cases
)");
}

TEST(Report, LawsThatLackTheSameAreCountedInOneLine) {
  Reported campaign = reported();
  campaign.result.laws.insert(campaign.result.laws.begin(), campaign.result.laws.back());
  std::ostringstream out;
  write_report(campaign.result, campaign.context(), out);
  EXPECT_NE(out.str().find("\n2 laws are skipped: the subject does not support groups\nsome.edge is unknown: "),
            std::string::npos)
      << out.str();
}

TEST(Report, TheJsonHasAVerdictAndTheLaws) {
  const Reported campaign = reported();
  const Json json = report_json(campaign.result, campaign.context());
  EXPECT_EQ(json.size(), 2u);
  EXPECT_EQ(json.at("verdict"), "fail");
  ASSERT_EQ(json.at("laws").size(), 4u);
  EXPECT_EQ(json["laws"][0].dump(),
            R"({"id":"some.pass","verdict":"pass","cases":100,"replayed":0,"discarded":0,"unsupported":0,"edges":{}})");
  const Json& failure = json["laws"][1].at("failure");
  EXPECT_EQ(failure.at("reproduce"), "some.below:1:0");
  EXPECT_EQ(failure.at("case").at("requests").size(), 2u);
  EXPECT_EQ(failure.at("answers").size(), 2u);
  EXPECT_EQ(failure.at("irrelevant").size(), 3u);
  EXPECT_EQ(json["laws"][2].at("reason"), "never met: 'never'");
  EXPECT_EQ(json["laws"][3].at("skipped"), true);
}

TEST(Report, JunitHasATestCaseALawAndEscapesItsText) {
  Reported campaign = reported();
  campaign.result.laws[1].failure->result.outcome.seen = "a < b & \"c\"\x01";
  const std::string xml = junit_xml(campaign.result, campaign.context());
  EXPECT_NE(xml.find(R"(<testsuites tests="4" failures="1" errors="0" skipped="2">)"), std::string::npos);
  EXPECT_NE(xml.find(R"(<testcase classname="ballast.some" name="some.pass"/>)"), std::string::npos);
  EXPECT_NE(xml.find(R"(message="a &lt; b &amp; &quot;c&quot;?")"), std::string::npos);
}

TEST(ShellQuoted, AWordComesBackFromTheShell) {
  EXPECT_EQ(shell_quoted("router.py"), "router.py");
  EXPECT_EQ(shell_quoted("python3 it's.py $HOME"), R"('python3 it'\''s.py $HOME')");
  EXPECT_EQ(shell_quoted(""), "''");
}

}  // namespace
}  // namespace ballast::props
