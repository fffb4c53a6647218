#include "sim/input_error.h"

#include <gtest/gtest.h>

namespace ballast::sim {
namespace {

TEST(InputError, SaysWhereWhatWhyAndWhatWouldBeRight) {
  const InputError error({.what = "cannot read the recording",
                          .where = "routes.jsonl:12",
                          .why = "the line ends inside a JSON value",
                          .right = "one JSON object a line would be right"});
  EXPECT_STREQ(error.what(),
               "routes.jsonl:12: cannot read the recording: the line ends inside a JSON value; "
               "one JSON object a line would be right");
}

TEST(InputError, IsOneLineWhateverIsInIt) {
  const InputError error({.what = "a\nb", .where = "c\rd", .why = "", .right = ""});
  EXPECT_STREQ(error.what(), "c\\x0dd: a\\x0ab");
}

}  // namespace
}  // namespace ballast::sim
