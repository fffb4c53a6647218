#include "sim/command/scenario_options.h"

#include <algorithm>
#include <thread>

#include "sim/input_error.h"
#include "sim/text/printable.h"
#include "sim/usage_error.h"

namespace ballast::sim {

namespace po = boost::program_options;

namespace {

Override override_of(const std::string& assignment) {
  if (!is_utf8(assignment))
    throw UsageError("--set " + assignment + ": this is not UTF-8; a scenario is");
  if (auto parsed = parse_override(assignment)) return *parsed;
  throw UsageError("--set " + assignment + ": this is no path and value; write them as in " +
                   "--set training.steps=50");
}

}  // namespace

std::vector<Override> overrides_of(const po::variables_map& given) {
  std::vector<Override> all;
  if (given.contains("set")) {
    for (const auto& assignment : given["set"].as<std::vector<std::string>>()) {
      all.push_back(override_of(assignment));
    }
  }
  if (given.contains("seed")) {
    all.push_back({.path = "seed", .value = given["seed"].as<std::string>(), .where = "--seed"});
  }
  return all;
}

std::size_t count_option(const po::variables_map& given, const std::string& name, std::size_t most,
                         std::size_t otherwise) {
  if (!given.contains(name)) return otherwise;
  const auto value = given[name].as<std::int64_t>();
  if (value >= 1 && static_cast<std::uint64_t>(value) <= most)
    return static_cast<std::size_t>(value);
  throw UsageError("--" + name + " " + std::to_string(value) + ": this is not within 1.." +
                   std::to_string(most));
}

std::size_t processors() {
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, most_threads);
}

void blaming_overrides(const std::vector<Override>& overrides, const std::function<void()>& read) {
  try {
    read();
  } catch (const InputError& error) {
    const auto is_there = [&](const Override& each) { return each.where == error.fault().where; };
    if (std::ranges::any_of(overrides, is_there)) throw UsageError(error.what());
    throw;
  }
}

std::string only_file(const po::variables_map& given, const std::string& name,
                      const std::string& advice) {
  if (!given.contains(name)) return "";
  const auto& files = given[name].as<std::vector<std::string>>();
  if (files.size() > 1) {
    throw UsageError("there are " + std::to_string(files.size()) + " " + name + " files, '" +
                     files[0] + "' and '" + files[1] + "' among them; " + advice);
  }
  if (files.front().empty()) throw UsageError("the name of the " + name + " file is empty");
  return files.front();
}

}  // namespace ballast::sim
