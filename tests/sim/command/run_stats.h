#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "sim/command/dispatch.h"
#include "sim/command/stats.h"

namespace ballast::sim {

struct Outcome {
  ExitCode code;
  std::string out, err;
};

/// `ballast stats ARGUMENTS...`, in process.
inline Outcome run_stats(std::vector<std::string> arguments) {
  static const std::vector<Verb> verbs = {{"stats", "", stats}};
  std::ostringstream out, err;
  arguments.insert(arguments.begin(), "stats");
  const ExitCode code = dispatch(verbs, arguments, out, err);
  return {code, out.str(), err.str()};
}

/// The "files" of `ballast stats --json ARGUMENTS...`.
inline nlohmann::json stats_files(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "--json");
  const Outcome outcome = run_stats(arguments);
  EXPECT_EQ(outcome.err, "");
  return nlohmann::json::parse(outcome.out)["files"];
}

/// The kinds of the problems of a file.
inline std::vector<std::string> kinds(const nlohmann::json& file) {
  std::vector<std::string> names;
  for (const auto& problem : file["problems"]) names.push_back(problem["kind"]);
  return names;
}

}  // namespace ballast::sim
