#include <signal.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "props/command/check.h"
#include "props/command/laws.h"
#include "props/command/mutants.h"
#include "sim/command/compare.h"
#include "sim/command/dispatch.h"
#include "sim/command/exit_code.h"
#include "sim/command/kept_memory.h"
#include "sim/command/replay.h"
#include "sim/command/report.h"
#include "sim/command/route.h"
#include "sim/command/run.h"
#include "sim/command/shrink.h"
#include "sim/command/signature.h"
#include "sim/command/stats.h"
#include "sim/command/sweep.h"
#include "sim/command/target_limit.h"

namespace {

using namespace ballast;

sim::ExitCode check(sim::Arguments arguments, std::ostream& out, std::ostream& err) {
  return props::check(props::all_laws(), arguments, out, err);
}

sim::ExitCode laws(sim::Arguments arguments, std::ostream& out, std::ostream& err) {
  return props::laws(props::all_laws(), arguments, out, err);
}

sim::ExitCode mutants(sim::Arguments arguments, std::ostream& out, std::ostream& err) {
  return props::mutants(props::all_laws(), props::all_mutants(), arguments, out, err);
}

}  // namespace

int main(int count, char** words) {
  using namespace ballast::sim;
  const std::array verbs = {
      Verb{"run", "simulate a scenario and judge it", run},
      Verb{"sweep", "run a scenario over many settings and seeds, and rank them", sweep},
      Verb{"compare", "two result sets side by side, with effect sizes", compare},
      Verb{"report", "the results of a run as one page of HTML", report},
      Verb{"shrink", "the smallest scenario that still fails the same way", shrink_command},
      Verb{"replay", "run a recording again, and name the first difference", replay},
      Verb{"check", "hold a router, balancer or collector against the laws", check},
      Verb{"laws", "list the laws", laws},
      Verb{"mutants", "run faulty variants, and tell which law notices which", mutants},
      Verb{"route", "one batch of scores: choices, weights, loads, next biases", route},
      Verb{"stats", "loads and metrics of recorded routing", stats},
      Verb{"signature", "one digest over what this build computes", signature},
  };
  signal(SIGXFSZ, SIG_IGN);  // a file that would become too large is an error like a full disk
  std::ios::sync_with_stdio(false);
  sim::keep_memory();
  if (!limit_target(std::getenv("BALLAST_TARGET"), std::cerr))
    return static_cast<int>(ExitCode::usage);
  const std::vector<std::string> arguments(words + (count > 0 ? 1 : 0), words + count);
  return static_cast<int>(dispatch(verbs, arguments, std::cout, std::cerr));
}
