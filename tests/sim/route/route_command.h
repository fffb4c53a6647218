#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "sim/command/dispatch.h"
#include "sim/command/route.h"
#include "tests/sim/npy/npy_files.h"

namespace ballast::sim::test {

struct RouteOutcome {
  ExitCode code;
  std::string out, err;
};

/// `ballast route ARGUMENTS...`, in process.
inline RouteOutcome run_route(std::vector<std::string> arguments) {
  static const std::vector<Verb> verbs = {{"route", "", route}};
  std::ostringstream out, err;
  arguments.insert(arguments.begin(), "route");
  const ExitCode code = dispatch(verbs, arguments, out, err);
  return {code, out.str(), err.str()};
}

}  // namespace ballast::sim::test
