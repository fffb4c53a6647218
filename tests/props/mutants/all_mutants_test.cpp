#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>

#include "props/laws/law.h"
#include "props/mutants/mutant.h"
#include "tests/props/support/trials.h"

namespace ballast::props {
namespace {

TEST(AllMutants, AreAHundredOrMoreEachWithANameOfItsOwn) {
  std::set<std::string> names;
  std::set<std::string> descriptions;
  for (const Mutant& mutant : all_mutants()) {
    EXPECT_TRUE(std::regex_match(mutant.name, std::regex("[a-z0-9]+(-[a-z0-9]+)*")))
        << mutant.name;
    EXPECT_TRUE(names.insert(mutant.name).second) << mutant.name;
    EXPECT_TRUE(descriptions.insert(mutant.description).second) << mutant.description;
    EXPECT_TRUE(mutant.description.ends_with(".")) << mutant.name;
  }
  EXPECT_GE(names.size(), 100u);
}

TEST(AllMutants, NameFaultsAndALawThatExist) {
  const std::regex fault("M[0-9]{2,3}|algorithms [1-7]\\.?[0-9]*|protocol");
  for (const Mutant& mutant : all_mutants()) {
    EXPECT_FALSE(mutant.faults.empty()) << mutant.name;
    for (const std::string& id : mutant.faults) {
      EXPECT_TRUE(std::regex_match(id, fault)) << mutant.name << ": " << id;
    }
    EXPECT_NO_THROW(law_of(mutant.law)) << mutant.name << ": " << mutant.law;
  }
}

TEST(AllMutants, HaveOneThatIsMadeForEveryLaw) {
  std::set<std::string> made_for;
  for (const Mutant& mutant : all_mutants()) {
    if (!mutant.equivalent) made_for.insert(mutant.law);
  }
  for (const Law& law : all_laws()) EXPECT_TRUE(made_for.contains(law.id)) << law.id;
}

TEST(AllMutants, SayThatTheyAreSubjectsLikeTheBuiltInOne) {
  for (const Mutant& mutant : all_mutants()) {
    EXPECT_EQ(mutant.make()->hello().name, "built-in") << mutant.name;
  }
}

class EveryMutant : public testing::TestWithParam<Mutant> {};

TEST_P(EveryMutant, BreaksTheLawThatItIsMadeForUnlessItIsEquivalent) {
  const Mutant& mutant = GetParam();
  const auto subject = mutant.make();
  const Trials trials = try_law(law_of(mutant.law), *subject, mutant.equivalent ? 300 : 2000);
  EXPECT_EQ(trials.broken.has_value(), !mutant.equivalent) << mutant.law;
  if (!trials.broken) return;
  EXPECT_FALSE(trials.broken->where.empty());
  EXPECT_FALSE(trials.broken->expected.empty());
  EXPECT_NE(trials.broken->expected, trials.broken->seen);
}

std::string name_of(const testing::TestParamInfo<Mutant>& info) {
  std::string name = info.param.name;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Mutants, EveryMutant, testing::ValuesIn(all_mutants()), name_of);

}  // namespace

/// What a failing test calls it.
void PrintTo(const Mutant& mutant, std::ostream* out) {
  *out << mutant.name;
}

}  // namespace ballast::props
