#include "sim/text/progress.h"

#include <gtest/gtest.h>

#include <sstream>

namespace ballast::sim {
namespace {

TEST(Progress, WritesNothingToAStreamThatIsNoTerminal) {
  std::ostringstream err;
  {
    Progress progress(err, 3, "step");
    for (std::size_t step = 0; step <= 3; ++step) progress.show(step);
  }
  EXPECT_EQ(err.str(), "");
}

TEST(ProgressLine, TellsHowFarItIsAndHowLongItTakes) {
  EXPECT_EQ(progress_line(0, 4, "step", 9.0), "[........................] 0 %  step 0 of 4");
  EXPECT_EQ(progress_line(1, 4, "step", 10.0),
            "[######..................] 25 %  step 1 of 4, 30 s left");
  EXPECT_EQ(progress_line(4, 4, "step", 10.0), "[########################] 100 %  step 4 of 4");
}

TEST(ProgressLine, PromisesNothingInTheFirstMoment) {
  EXPECT_EQ(progress_line(1, 4, "step", 0.1), "[######..................] 25 %  step 1 of 4");
}

TEST(Duration, IsSaidInTwoUnitsAtMost) {
  EXPECT_EQ(duration(7.2), "8 s");
  EXPECT_EQ(duration(125), "2 min 05 s");
  EXPECT_EQ(duration(4200), "1 h 10 min");
}

}  // namespace
}  // namespace ballast::sim
