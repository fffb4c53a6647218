#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

#include "props/laws/families.h"
#include "props/subjects/built_in_subject.h"
#include "tests/props/support/trials.h"

namespace ballast::props {
namespace {

class EveryLaw : public testing::TestWithParam<Law> {};

TEST_P(EveryLaw, HoldsForTheBuiltInSubject) {
  BuiltInSubject subject;
  const Law& law = GetParam();
  const Trials trials = try_law(law, subject, 600);
  EXPECT_FALSE(trials.broken) << describe(law, *trials.broken);
  EXPECT_LT(trials.unsupported, trials.cases / 2);
  EXPECT_GE(trials.held, trials.cases / 5) << "too much is discarded to show anything";
  for (const auto& edge : law.edges) {
    EXPECT_GE(trials.edges.count(edge) > 0 ? trials.edges.at(edge) : 0, 5) << edge;
  }
}

TEST_P(EveryLaw, SaysWhatItIs) {
  const Law& law = GetParam();
  EXPECT_FALSE(law.statement.empty());
  EXPECT_EQ(law.statement.back(), '.');
  EXPECT_FALSE(law.source.empty());
  EXPECT_FALSE(law.needs.empty());
}

std::string name_of(const testing::TestParamInfo<Law>& info) {
  std::string name = info.param.id;
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Laws, EveryLaw, testing::ValuesIn(all_laws()), name_of);

TEST(AllLaws, HaveIdsOfTheirOwn) {
  std::set<std::string> ids;
  for (const Law& law : all_laws()) EXPECT_TRUE(ids.insert(law.id).second) << law.id;
}

}  // namespace
}  // namespace ballast::props
