#include "props/protocol/raw_member.h"

#include <gtest/gtest.h>

namespace ballast::props {
namespace {

TEST(RawMember, GivesTheTextOfTheMemberUnchanged) {
  const std::string line = R"({"id":3, "note":"\"state\":7 }","state":{"n": 123456789012345678901234567890, "s":"}\\"} , "ok":true})";
  EXPECT_EQ(raw_member(line, "state"), R"({"n": 123456789012345678901234567890, "s":"}\\"} )");
  EXPECT_EQ(raw_member(line, "ok"), "true");
  EXPECT_EQ(raw_member(line, "none"), "null");
  EXPECT_EQ(raw_member(R"({"state":[1,[2,"],"]],"x":{}})", "state"), R"([1,[2,"],"]])");
  EXPECT_EQ(raw_member("{}", "state"), "null");
}

}  // namespace
}  // namespace ballast::props
