#include <signal.h>

#include <array>
#include <iostream>
#include <string>
#include <vector>

#include "sim/command/dispatch.h"
#include "sim/command/run.h"
#include "sim/command/stats.h"

int main(int count, char** words) {
  using namespace ballast::sim;
  const std::array verbs = {
      Verb{"run", "simulate a scenario and judge it", run},
      Verb{"stats", "loads and metrics of recorded routing", stats},
  };
  signal(SIGXFSZ, SIG_IGN);  // a file that would become too large is an error like a full disk
  std::ios::sync_with_stdio(false);
  const std::vector<std::string> arguments(words + (count > 0 ? 1 : 0), words + count);
  return static_cast<int>(dispatch(verbs, arguments, std::cout, std::cerr));
}
