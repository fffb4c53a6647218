#include "sim/recordings/load_csv.h"

#include <gtest/gtest.h>

namespace ballast::sim {
namespace {

using Fields = std::vector<std::string>;

TEST(SplitCsv, SplitsAtCommasOutsideQuotes) {
  EXPECT_EQ(split_csv("a,,b"), (Fields{"a", "", "b"}));
  EXPECT_EQ(split_csv("\"a,b\",\"say \"\"x\"\"\""), (Fields{"a,b", "say \"x\""}));
  EXPECT_EQ(split_csv(""), Fields{""});
}

TEST(IsLoadHeader, NeedsAnExpertAndACount) {
  EXPECT_TRUE(is_load_header({"layer", "expert", "count"}));
  EXPECT_TRUE(is_load_header({"expert", "count_topk", "count_top1"}));
  EXPECT_FALSE(is_load_header({"layer", "expert_a", "expert_b", "count"}));
  EXPECT_FALSE(is_load_header({"expert", "load"}));
}

}  // namespace
}  // namespace ballast::sim
