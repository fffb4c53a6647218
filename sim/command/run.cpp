#include "sim/command/run.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "sim/command/options.h"
#include "sim/command/run_view.h"
#include "sim/command/usage_error.h"
#include "sim/output/output_directory.h"
#include "sim/output/run_json.h"
#include "sim/scenario/embedded.h"
#include "sim/scenario/memory.h"
#include "sim/scenario/scenario_file.h"
#include "sim/simulation/simulation.h"
#include "sim/simulation/verdict.h"
#include "sim/text/progress.h"
#include "sim/threads/thread_pool.h"
#include "sim/tokens/make_source.h"

namespace ballast::sim {

namespace po = boost::program_options;

namespace {

constexpr const char* usage = R"(ballast run [SCENARIO] [options]

Simulates the training run that a scenario file describes, shows how the experts' loads develop, and judges
the scenario's expectations. Without a file: the built-in quickstart. With variants in the file, all of them run
side by side on the same tokens.

Examples
  ballast run                                  the quickstart
  ballast run my.json --set training.steps=50 --set balancer.kind=none
  ballast run my.json --seed 7 --out results   also writes scenario.json, metrics.jsonl,
                                               diagnostics.jsonl, eval.jsonl and summary.json
  ballast run my.json --json | jq .verdict

)";

constexpr const char* exit_codes = R"(
Exit codes: 0 every expectation holds; 1 one failed; 2 unknown (nothing was expected, or there was nothing to judge
by); 3 usage; 4 bad scenario or token file; 70 internal error, or results that cannot be written.
)";

struct RunOptions {
  std::optional<std::string> file;
  std::vector<Override> overrides;
  std::optional<std::string> out;
  std::size_t threads = 1;
  bool json = false;
  bool dry_run = false;
  bool help = false;
};

OptionSet option_set() {
  OptionSet set{.named = po::options_description("Options"), .positional = {}};
  set.named.add_options()("set", po::value<std::vector<std::string>>()->composing()->value_name("PATH=VALUE"),
                          "set a field of the scenario, in variants too; may be given often")(
      "seed", po::value<std::string>()->value_name("N"), "the same as --set seed=N")(
      "out", po::value<std::string>()->value_name("DIR"), "write the results into a new directory")(
      "threads", po::value<std::size_t>()->value_name("N"),
      "threads to use (default: all processors); no result depends on it")(
      "json", "print the summary as JSON instead of tables")(
      "dry-run", "print the scenario with every default filled in, and run nothing")("help", "print this text");
  set.named.add_options()("scenario", po::value<std::string>()->value_name("FILE"), "the scenario file");
  set.positional.add("scenario", 1);
  return set;
}

Override override_of(const std::string& assignment) {
  if (auto parsed = parse_override(assignment)) return *parsed;
  throw UsageError("--set " + assignment + ": there is no value; write a path and a value, as in " +
                   "--set training.steps=50");
}

RunOptions read_options(Arguments arguments) {
  const auto given = parse_options(option_set(), arguments);
  RunOptions options;
  options.json = given.contains("json");
  options.dry_run = given.contains("dry-run");
  options.help = given.contains("help");
  if (given.contains("scenario")) options.file = given["scenario"].as<std::string>();
  if (given.contains("set")) {
    for (const auto& assignment : given["set"].as<std::vector<std::string>>()) {
      options.overrides.push_back(override_of(assignment));
    }
  }
  if (given.contains("seed")) {
    options.overrides.push_back(
        {.path = "seed", .value = given["seed"].as<std::string>(), .where = "--seed"});
  }
  if (given.contains("out")) options.out = given["out"].as<std::string>();
  options.threads = std::max(1u, std::thread::hardware_concurrency());
  if (given.contains("threads")) options.threads = given["threads"].as<std::size_t>();
  if (options.threads < 1 || options.threads > 1024) {
    throw UsageError("--threads " + std::to_string(options.threads) + ": not within 1..1024");
  }
  return options;
}

/// The runs of a scenario file, all on the same tokens where their token settings are the same.
class SideBySide {
 public:
  SideBySide(const ScenarioFile& file, std::size_t threads) : pool_(threads) {
    const auto scenarios = expand(file);
    // Whole runs are the better pieces to share out when there are enough of them.
    const bool spread_runs = scenarios.size() >= threads;
    const Executor& inner = spread_runs ? serial_executor() : pool_;
    outer_ = spread_runs ? static_cast<const Executor*>(&pool_) : &serial_executor();
    for (const auto& scenario : scenarios) {
      sources_.push_back(make_source(scenario.tokens, scenario.seed));
      runs_.push_back(std::make_unique<Simulation>(scenario, *sources_.back(), inner));
    }
  }

  std::vector<Simulation*> runs() const {
    std::vector<Simulation*> all;
    for (const auto& run : runs_) all.push_back(run.get());
    return all;
  }
  std::size_t steps() const {
    std::size_t most = 0;
    for (const auto& run : runs_) most = std::max(most, run->scenario().training.steps);
    return most;
  }
  /// Brings every run to this step (or to its end, if that comes first).
  void advance_to(std::size_t step) {
    outer_->for_each(runs_.size(), [&](std::size_t i) {
      while (!runs_[i]->done() && runs_[i]->completed() < step) runs_[i]->advance();
    });
  }

 private:
  ThreadPool pool_;
  const Executor* outer_;
  std::vector<std::unique_ptr<TokenSource>> sources_;
  std::vector<std::unique_ptr<Simulation>> runs_;
};

void write_run(OutputDirectory& directory, const std::string& folder, const Simulation& run) {
  directory.write(folder + "scenario.json", to_json(run.scenario()).dump(2) + "\n");
  directory.write(folder + "metrics.jsonl", metrics_lines(run));
  directory.write(folder + "diagnostics.jsonl", diagnostics_lines(run));
  directory.write(folder + "eval.jsonl", evaluation_lines(run));
  directory.write(folder + "summary.json", summary_json(run).dump(2) + "\n");
}

void write_results(OutputDirectory& directory, const ScenarioFile& file, const std::vector<Simulation*>& runs,
                   const Json& summary) {
  if (file.variants.empty()) {
    write_run(directory, "", *runs.front());
  } else {
    for (const Simulation* run : runs) write_run(directory, run->scenario().name + "/", *run);
    directory.write("scenario.json", to_json(file).dump(2) + "\n");
    directory.write("summary.json", summary.dump(2) + "\n");
  }
  directory.commit();
}

ExitCode exit_code(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass: return ExitCode::pass;
    case Verdict::fail: return ExitCode::failed;
    default: return ExitCode::unknown;
  }
}

Verdict overall_verdict(const std::vector<Simulation*>& runs) {
  std::vector<ExpectationOutcome> outcomes;
  for (const Simulation* run : runs) std::ranges::move(judge(*run), std::back_inserter(outcomes));
  return overall(outcomes);
}

}  // namespace

ExitCode run(Arguments arguments, std::ostream& out, std::ostream& err) {
  const RunOptions options = read_options(arguments);
  if (options.help) {
    out << usage << option_set().named << exit_codes;
    return ExitCode::pass;
  }
  const ScenarioFile file = options.file ? load_scenario(*options.file, options.overrides)
                                         : parse_scenario(quickstart_text(), "quickstart", options.overrides);
  if (options.dry_run) {
    out << to_json(file).dump(2) << '\n';
    return ExitCode::pass;
  }
  check_memory(expand(file), options.file.value_or("quickstart"));
  std::optional<OutputDirectory> directory;
  if (options.out) directory.emplace(*options.out);

  SideBySide side_by_side(file, options.threads);
  const auto runs = side_by_side.runs();
  RunView view(out, runs);
  Progress progress(err, side_by_side.steps(), "step");
  for (std::size_t step = 1; step <= side_by_side.steps(); ++step) {
    side_by_side.advance_to(step);
    if (!options.json && view.is_due(step)) {
      progress.clear();
      view.show_step(step);
    }
    progress.show(step);
  }
  progress.clear();

  const Json summary = file.variants.empty()
                           ? summary_json(*runs.front())
                           : summary_json(file.common.name, {runs.begin(), runs.end()});
  if (directory) write_results(*directory, file, runs, summary);
  const Verdict verdict = overall_verdict(runs);
  if (options.json) {
    out << summary.dump(2) << '\n';
  } else {
    view.show_end(summary["digest"], verdict);
  }
  return exit_code(verdict);
}

}  // namespace ballast::sim
