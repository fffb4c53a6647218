#include "sim/command/run.h"

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "sim/command/options.h"
#include "sim/command/run_view.h"
#include "sim/input_error.h"
#include "sim/output/output_directory.h"
#include "sim/output/run_json.h"
#include "sim/output/run_results.h"
#include "sim/scenario/embedded.h"
#include "sim/scenario/memory.h"
#include "sim/scenario/scenario_file.h"
#include "sim/simulation/side_by_side.h"
#include "sim/simulation/verdict.h"
#include "sim/text/printable.h"
#include "sim/text/progress.h"
#include "sim/usage_error.h"

namespace ballast::sim {

namespace po = boost::program_options;

namespace {

constexpr std::int64_t most_threads = 1024;

constexpr const char* introduction = R"(Usage: ballast run [OPTION...] [SCENARIO]

Simulates the training run that a scenario file describes, shows how the loads
of the experts develop, and judges what the scenario expects. Without a file:
the built-in quickstart. Variants in a file run side by side on the same tokens.

)";

constexpr const char* explanation = R"(
--out writes scenario.json (complete, every default filled in), metrics.jsonl
(a line a step), diagnostics.jsonl (a line a log interval), eval.jsonl (a line
an evaluation) and summary.json; with variants, a folder of these for each, and
scenario.json and summary.json of all. DIR appears whole at the end, or not.

Exit codes: 0 every expectation holds; 1 one failed; 2 unknown: nothing was
expected, or there was nothing to judge by; 3 usage, --set included; 4 bad
scenario or token file, or a scenario that does not fit into memory; 70 internal
error, or results that cannot be written.

Examples:
  ballast run
  ballast run my.json --set training.steps=300 --set balancer.kind=none
  ballast run my.json --seed 7 --out results
  ballast run my.json --json | jq .verdict
  ballast run --dry-run > my.json    # the quickstart, to begin a scenario from
)";

struct RunOptions {
  std::optional<std::string> file = std::nullopt;
  std::vector<Override> overrides = {};
  std::optional<std::string> out = std::nullopt;
  std::size_t threads = 1;
  bool json = false;
  bool dry_run = false;
  bool help = false;

  std::string origin() const { return file.value_or("quickstart"); }
};

po::options_description shown_options() {
  po::options_description shown("Options");
  shown.add_options()("set",
                      po::value<std::vector<std::string>>()->composing()->value_name("PATH=VALUE"),
                      "set a field, in all variants; may be repeated")(
      "seed", po::value<std::string>()->value_name("N"), "the same as --set seed=N")(
      "out", po::value<std::string>()->value_name("DIR"), "write the results into a new directory")(
      "threads", po::value<std::int64_t>()->value_name("N"),
      "default: all processors; changes no result")("json", "print the summary as JSON, no tables")(
      "dry-run", "print the complete scenario, run nothing")("help", "print this text");
  return shown;
}

OptionSet options_and_file() {
  OptionSet options{.named = shown_options(), .positional = {}};
  options.named.add_options()("scenario", po::value<std::vector<std::string>>(), "");
  options.positional.add("scenario", -1);
  return options;
}

std::optional<std::string> scenario_file(const po::variables_map& given) {
  if (!given.contains("scenario")) return std::nullopt;
  const auto& files = given["scenario"].as<std::vector<std::string>>();
  if (files.size() > 1) {
    throw UsageError("there are " + std::to_string(files.size()) + " scenario files, '" + files[0] +
                     "' and '" + files[1] +
                     "' among them; give one, and compare settings by its variants");
  }
  if (files.front().empty())
    throw UsageError("the name of the scenario file is empty; leave it out for the quickstart");
  return files.front();
}

Override override_of(const std::string& assignment) {
  if (!is_utf8(assignment))
    throw UsageError("--set " + assignment + ": this is not UTF-8; a scenario is");
  if (auto parsed = parse_override(assignment)) return *parsed;
  throw UsageError("--set " + assignment + ": this is no path and value; write them as in " +
                   "--set training.steps=50");
}

/// In the order of the command line, where the last word counts; --seed after all.
std::vector<Override> overrides(const po::variables_map& given) {
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

std::size_t thread_count(const po::variables_map& given) {
  const std::int64_t threads =
      given.contains("threads")
          ? given["threads"].as<std::int64_t>()
          : std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, most_threads);
  if (threads >= 1 && threads <= most_threads) return static_cast<std::size_t>(threads);
  throw UsageError("--threads " + std::to_string(threads) + ": this is not within 1.." +
                   std::to_string(most_threads));
}

RunOptions read_options(Arguments arguments) {
  const auto given = parse_options(options_and_file(), arguments);
  if (given.contains("help")) return {.help = true};
  RunOptions options{.file = scenario_file(given),
                     .overrides = overrides(given),
                     .out = std::nullopt,
                     .threads = thread_count(given),
                     .json = given.contains("json"),
                     .dry_run = given.contains("dry-run")};
  if (given.contains("out")) options.out = given["out"].as<std::string>();
  if (options.out && options.dry_run) {
    throw UsageError(
        "--dry-run runs nothing, so there is nothing to write by --out; leave one of them out");
  }
  return options;
}

/// What the command line set wrongly is its own fault, not that of the file.
ScenarioFile read_scenario(const RunOptions& options) {
  try {
    return options.file ? load_scenario(*options.file, options.overrides)
                        : parse_scenario(quickstart_text(), options.origin(), options.overrides);
  } catch (const InputError& error) {
    const auto is_there = [&](const Override& each) { return each.where == error.fault().where; };
    if (std::ranges::any_of(options.overrides, is_there)) throw UsageError(error.what());
    throw;
  }
}

void simulate(SideBySide& side_by_side, RunView* view, std::ostream& err) {
  Progress progress(err, side_by_side.steps(), "step");
  progress.show(0);
  for (std::size_t step = 1; step <= side_by_side.steps(); ++step) {
    side_by_side.advance_to(step);
    if (view != nullptr && view->is_due(step)) {
      progress.clear();
      view->show_step(step);
    }
    progress.show(step);
  }
}

ExitCode exit_code(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass:
      return ExitCode::pass;
    case Verdict::fail:
      return ExitCode::failed;
    default:
      return ExitCode::unknown;
  }
}

}  // namespace

ExitCode run(Arguments arguments, std::ostream& out, std::ostream& err) {
  const RunOptions options = read_options(arguments);
  if (options.help) {
    out << introduction << shown_options() << explanation;
    return ExitCode::pass;
  }
  const ScenarioFile file = read_scenario(options);
  if (options.dry_run) {
    out << to_json(file).dump(2) << '\n';
    return ExitCode::pass;
  }
  const auto scenarios = expand(file);
  check_memory(scenarios, options.origin());
  std::optional<OutputDirectory> directory;
  if (options.out) {
    check_result_folders(file, options.origin());
    directory.emplace(*options.out);
  }

  SideBySide side_by_side(scenarios, options.threads);
  const auto runs = side_by_side.runs();
  RunView view(out, file, runs);
  if (!options.json) view.show_start();
  simulate(side_by_side, options.json ? nullptr : &view, err);

  // Shown before it is written: a full disk shall not take the verdict as well.
  if (options.json) {
    out << summary_json(file, runs).dump(2) << '\n' << std::flush;
  } else {
    view.show_end();
  }
  if (directory) write_results(*directory, file, runs);
  return exit_code(overall(judge(runs)));
}

}  // namespace ballast::sim
