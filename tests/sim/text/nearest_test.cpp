#include "sim/text/nearest.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace ballast::sim {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsAndReplacements) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("top_k", "top-k"), 1u);
}

RC_GTEST_PROP(EditDistance, IsAMetric,
              (const std::string& a, const std::string& b, const std::string& c)) {
  RC_ASSERT((edit_distance(a, b) == 0) == (a == b));
  RC_ASSERT(edit_distance(a, b) == edit_distance(b, a));
  RC_ASSERT(edit_distance(a, c) <= edit_distance(a, b) + edit_distance(b, c));
}

TEST(Nearest, FindsTheWordThatWasMeant) {
  const std::vector<std::string> words = {"steps", "ranks", "micro_batches"};
  EXPECT_EQ(nearest("stpes", words), "steps");
  EXPECT_EQ(nearest("microbatch", words), "micro_batches");
  EXPECT_EQ(did_you_mean("rank", words), " Did you mean 'ranks'?");
}

TEST(Nearest, SuggestsNothingWhenNoWordIsNear) {
  const std::vector<std::string> words = {"steps", "ranks"};
  EXPECT_EQ(nearest("temperature", words), std::nullopt);
  EXPECT_EQ(did_you_mean("temperature", words), "");
  EXPECT_EQ(nearest("anything", {}), std::nullopt);
}

}  // namespace
}  // namespace ballast::sim
