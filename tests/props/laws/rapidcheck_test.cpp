// The laws as RapidCheck properties: cases are RapidCheck's to draw (RC_PARAMS chooses seed and number), and a
// failure comes with the smallest case that our own shrinking finds.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cctype>

#include "props/campaign/check_case.h"
#include "props/campaign/describe_case.h"
#include "props/cases/shrink.h"
#include "props/laws/law.h"
#include "props/subjects/built_in_subject.h"
#include "tests/props/support/trials.h"

namespace ballast::props {
namespace {

std::string smallest(const Law& law, Subject& subject, const Case& input) {
  const Case small = shrink(input, [&](const Case& candidate) { return check_case(law, subject, candidate).broken(); });
  return describe(law, check_case(law, subject, small).outcome) + "\n" + describe_case(small, {}, 2);
}

/// RapidCheck draws a seed and a size, and shrinks the size; a stream makes the case of them, which is faster by far
/// than drawing every number from RapidCheck.
void hold(const Law& law, Subject& subject) {
  const auto seed = *rc::gen::noShrink(rc::gen::arbitrary<std::uint64_t>());
  const auto size = *rc::gen::inRange<std::size_t>(0, 101);
  Stream stream(seed);
  const Case input = law.generate(stream, size);
  const CaseResult result = check_case(law, subject, input);
  if (result.outcome.kind == Outcome::Kind::discarded) RC_DISCARD("the case does not concern the law");
  if (result.broken()) RC_FAIL(smallest(law, subject, input));
}

class EveryLawWithRapidCheck : public testing::TestWithParam<Law> {};

TEST_P(EveryLawWithRapidCheck, HoldsForTheBuiltInSubject) {
  BuiltInSubject subject;
  EXPECT_TRUE(rc::check(GetParam().statement, [&] { hold(GetParam(), subject); }));
}

std::string name_of(const testing::TestParamInfo<Law>& info) {
  std::string name = info.param.id;
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Laws, EveryLawWithRapidCheck, testing::ValuesIn(all_laws()), name_of);

/// Chooses by the scores alone.
class WithoutBiases final : public BuiltInSubject {
  Routing<float> route(const Forward& forward) override {
    const Biases before = biases();
    set_biases(Biases(before.size(), std::vector<float>(before[0].size())));
    const Routing<float> routing = BuiltInSubject::route(forward);
    set_biases(before);
    return routing;
  }
};

TEST(LawsWithRapidCheck, FindASubjectThatIsWrong) {
  WithoutBiases subject;
  EXPECT_FALSE(rc::check([&] { hold(law_of("selection.top-k"), subject); }));
}

}  // namespace
}  // namespace ballast::props
