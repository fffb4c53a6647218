#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

#include "props/laws/families.h"
#include "props/subjects/built_in_subject.h"
#include "tests/props/support/trials.h"

namespace ballast::props {
namespace {

std::vector<Law> laws_of_routing_counting_and_state() {
  std::vector<Law> laws;
  for (const auto family :
       {selection_laws, weights_laws, counting_laws, invisible_laws, collector_laws, state_laws}) {
    for (Law& law : family()) laws.push_back(std::move(law));
  }
  return laws;
}

class EveryLaw : public testing::TestWithParam<Law> {};

TEST_P(EveryLaw, HoldsForTheBuiltInSubject) {
  BuiltInSubject subject;
  const Law& law = GetParam();
  const Trials trials = try_law(law, subject, 600);
  EXPECT_FALSE(trials.broken) << describe(law, *trials.broken);
  if (law.needs.contains(Capability::groups)) return;  // the built-in subject has none
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

INSTANTIATE_TEST_SUITE_P(Laws, EveryLaw, testing::ValuesIn(laws_of_routing_counting_and_state()),
                         name_of);

TEST(AllLaws, HaveIdsOfTheirOwn) {
  std::set<std::string> ids;
  for (const Law& law : all_laws()) EXPECT_TRUE(ids.insert(law.id).second) << law.id;
}

}  // namespace
}  // namespace ballast::props
