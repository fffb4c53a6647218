// What the determinism matrix builds of the command for each compiler: the verbs that
// it runs, in half the time. It has nothing of its own.
#include <array>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "sim/command/dispatch.h"
#include "sim/command/replay.h"
#include "sim/command/run.h"
#include "sim/command/signature.h"
#include "sim/command/target_limit.h"

int main(int count, char** words) {
  using namespace ballast::sim;
  const std::array verbs = {
      Verb{"run", "simulate a scenario and judge it", run},

      Verb{"replay", "run a recording again, and name the first difference", replay},
      Verb{"signature", "one digest over what this build computes", signature}};
  if (!limit_target(std::getenv("BALLAST_TARGET"), std::cerr))
    return static_cast<int>(ExitCode::usage);
  const std::vector<std::string> arguments(words + 1, words + count);
  return static_cast<int>(dispatch(verbs, arguments, std::cout, std::cerr));
}
