#include "sim/command/sweep.h"

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/command/options.h"
#include "sim/command/scenario_options.h"
#include "sim/command/sweep_view.h"
#include "sim/input_error.h"
#include "sim/scenario/memory.h"
#include "sim/scenario/work.h"
#include "sim/simulation/side_by_side.h"
#include "sim/sweep/columns.h"
#include "sim/sweep/run_sweep.h"
#include "sim/sweep/summary.h"
#include "sim/sweep/sweep_directory.h"
#include "sim/text/nearest.h"
#include "sim/text/numbers.h"
#include "sim/text/printable.h"
#include "sim/text/progress.h"
#include "sim/usage_error.h"

namespace ballast::sim {

namespace po = boost::program_options;

namespace {

constexpr const char* introduction = R"(Usage: ballast sweep [OPTION...] FILE

Runs a scenario over and over with some of its fields varied, with several seeds
each, and ranks the settings. A sweep file:

  {"ballast_sweep": 1, "name": "...", "base": "scenario.json", "seeds": 3,
   "axes": [
     {"field": "tokens.sigma", "values": [0, 1, 2]},
     {"field": "model.top_k", "range": {"from": 1, "to": 4, "step": 1}},
     {"field": "training.optimizer.learning_rate",
      "log_range": {"from": 1e-4, "to": 1e-1, "points": 7}},
     {"name": "balancer", "values": [
       {"label": "none", "set": {"balancer.kind": "none"}},
       {"label": "exact", "set": {"balancer.estimator": "exact"}}]}]}

The base is a file (named relative to the sweep file) or a scenario in place,
without variants. "mode" is "grid" (default: every value with every other),
"zip" (first values, second values, ...), or "random": "budget" points, drawn
from "sampling_seed", where a range may go without points. Each point runs with
the seeds base.seed, base.seed + 1, ...

)";

constexpr const char* explanation = R"(
--out keeps the results in DIR, a line of results.jsonl as soon as a run is
done. A sweep that was stopped, at whatever moment, goes on when it is started
again, and ends with the same bytes: results.jsonl in the order of the points,
results.csv, summary.json, and sweep.json, which says what was run. A directory
of another sweep, or of another version of this program, is refused.

A run that cannot be made, because values of its point contradict each other or
something goes wrong in it, is reported and stops no other. Of an expectation in
the base scenario each run has a verdict.

Exit codes: 0 every run was made, and met what is expected; 1 a run could not be
made, or an expectation failed; 2 what is expected could not be judged; 3 usage,
--set and a directory of another sweep included; 4 bad sweep or scenario file,
or runs that do not fit into memory; 70 internal error, or results that cannot
be written.

Examples:
  ballast sweep scenarios/skew/first.sweep.json --dry-run
  ballast sweep scenarios/skew/first.sweep.json --out results
  ballast sweep my.sweep.json --set training.steps=50 --rank-by loss
  ballast sweep my.sweep.json --json | jq '.points[0].axes'
)";

struct SweepOptions {
  std::string file;
  std::vector<Override> overrides = {};
  std::optional<std::string> out = std::nullopt;
  Workers workers = {};
  std::size_t rank_column = 0;
  std::size_t top = 40;
  bool json = false;
  bool dry_run = false;
  bool help = false;
};

po::options_description shown_options() {
  po::options_description shown("Options");
  shown.add_options()("set",
                      po::value<std::vector<std::string>>()->composing()->value_name("PATH=VALUE"),
                      "set a field of the base; may be repeated")(
      "seed", po::value<std::string>()->value_name("N"), "the same as --set seed=N")(
      "out", po::value<std::string>()->value_name("DIR"), "keep the results, or go on from there")(
      "jobs", po::value<std::int64_t>()->value_name("N"),
      "runs at a time; default: all processors; changes no result")(
      "threads", po::value<std::int64_t>()->value_name("N"), "of each run; default: 1")(
      "rank-by", po::value<std::string>()->value_name("COLUMN"),
      "default: final_max_violation; the table explains the columns")(
      "top", po::value<std::int64_t>()->value_name("N"), "points to show; default: 40; 0: all")(
      "json", "print the summary as JSON, no tables")(
      "dry-run", "print the points, and what they would take; run nothing")("help",
                                                                            "print this text");
  return shown;
}

std::size_t rank_column(const po::variables_map& given) {
  if (!given.contains("rank-by")) return 0;
  const auto& name = given["rank-by"].as<std::string>();
  if (const auto column = find_column(name)) return *column;
  std::vector<std::string> names;
  std::string all;
  for (const RunColumn& column : run_columns()) {
    names.push_back(column.name);
    all += (all.empty() ? "" : ", ") + column.name;
  }
  throw UsageError("--rank-by " + name + ": there is no such column." + did_you_mean(name, names) +
                   " There are " + all);
}

SweepOptions read_options(Arguments arguments) {
  const auto given = parse_options(with_words(shown_options(), "sweep"), arguments);
  if (given.contains("help")) return {.file = {}, .help = true};
  SweepOptions options{.file = only_file(given, "sweep", "give one"),
                       .overrides = overrides_of(given),
                       .out = std::nullopt,
                       .workers = {.jobs = count_option(given, "jobs", most_threads, processors()),
                                   .threads = count_option(given, "threads", most_threads, 1)},
                       .rank_column = rank_column(given),
                       .json = given.contains("json"),
                       .dry_run = given.contains("dry-run")};
  if (options.file.empty())
    throw UsageError("sweep needs a FILE; 'ballast sweep --help' explains it");
  if (given.contains("out")) options.out = given["out"].as<std::string>();
  if (given.contains("top") && given["top"].as<std::int64_t>() == 0) {
    options.top = 0;
  } else {
    options.top = count_option(given, "top", most_points, options.top);
  }
  return options;
}

/// The runs of the largest points that can be under way at once.
std::vector<Scenario> largest_together(const Sweep& sweep, std::size_t jobs) {
  std::vector<const Scenario*> all;
  for (const auto& planned : sweep.scenarios) {
    if (const auto* scenario = std::get_if<Scenario>(&planned)) all.push_back(scenario);
  }
  std::ranges::stable_sort(all, std::ranges::greater(), [](const Scenario* scenario) {
    return estimate_memory(*scenario).bytes();
  });
  std::vector<Scenario> largest;
  const std::size_t together = std::min(jobs, sweep.runs());
  for (const Scenario* scenario : all) {
    for (std::size_t seed = 0; seed < sweep.seeds && largest.size() < together; ++seed) {
      largest.push_back(*scenario);
    }
  }
  return largest;
}

std::uint64_t bytes_of(const std::vector<Scenario>& scenarios) {
  std::uint64_t total = 0;
  for (const Scenario& scenario : scenarios) total += estimate_memory(scenario).bytes();
  return total;
}

/// Seconds of all runs on these many workers, told from some steps of the smallest run.
double estimate_seconds(const Sweep& sweep, std::size_t jobs) {
  using Clock = std::chrono::steady_clock;
  const Scenario* smallest = nullptr;
  double work = 0.0;
  for (const auto& planned : sweep.scenarios) {
    const auto* scenario = std::get_if<Scenario>(&planned);
    if (scenario == nullptr) continue;
    work += estimate_work(*scenario) * static_cast<double>(sweep.seeds);
    if (smallest == nullptr || estimate_work(*scenario) < estimate_work(*smallest))
      smallest = scenario;
  }
  SideBySide trial({smallest, 1}, 1);
  const auto start = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  std::size_t steps = 0;
  while (steps < trial.steps() && (steps < 3 || elapsed() < 0.3)) trial.advance_to(++steps);
  const double share = static_cast<double>(steps) / static_cast<double>(smallest->training.steps);
  return elapsed() / (share * estimate_work(*smallest)) * work / static_cast<double>(jobs);
}

Json plan_json(const Sweep& sweep, std::uint64_t bytes) {
  Json json = identity_of(sweep);
  json["runs"] = sweep.runs();
  json["memory_bytes"] = bytes;
  json["points"] = Json::array();
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    Json point = {{"point", i}, {"axes", sweep.points[i].axes}};
    if (const auto* impossible = std::get_if<Impossible>(&sweep.scenarios[i]))
      point["error"] = impossible->reason;
    json["points"].push_back(std::move(point));
  }
  return json;
}

/// Times differ from run to run, so they are told on stderr.
void show_plan(const Sweep& sweep, const SweepOptions& options, std::ostream& out,
               std::ostream& err) {
  const std::uint64_t bytes = bytes_of(largest_together(sweep, options.workers.jobs));
  if (options.json) {
    out << plan_json(sweep, bytes).dump(2) << '\n';
  } else {
    out << wrapped(printable(sweep.name, 200) + ": " + counted(sweep.points.size(), "point") +
                       ", " + counted(sweep.seeds, "seed") + " each, " +
                       counted(sweep.runs(), "run") + "; about " +
                       in_words(std::max<std::uint64_t>(1, bytes >> 20)) + " MiB for " +
                       counted(options.workers.jobs, "run") + " at a time",
                   80, 0)
        << '\n';
    write_sweep_points(sweep, out);
  }
  err << "ballast: about " << duration(estimate_seconds(sweep, options.workers.jobs)) << " with "
      << counted(options.workers.jobs, "job") << '\n';
}

/// The results of all runs in their order; those that `directory` has already are not made again.
std::vector<RunResult> results_of(const Sweep& sweep, const SweepOptions& options,
                                  SweepDirectory* directory, std::ostream& err) {
  const std::map<std::size_t, RunResult> none;
  const auto& known = directory != nullptr ? directory->results() : none;
  std::vector<RunResult> results(sweep.runs());
  std::vector<std::size_t> pending;
  for (std::size_t run = 0; run < sweep.runs(); ++run) {
    const auto found = known.find(run);
    if (found == known.end()) {
      pending.push_back(run);
    } else {
      results[run] = found->second;
    }
  }
  Progress progress(err, pending.size(), "run");
  std::size_t done = 0;
  progress.show(done);
  run_sweep(sweep, pending, options.workers, [&](const RunResult& result) {
    if (directory != nullptr) directory->append(result);
    if (result.error) {
      progress.clear();
      err << "ballast: point " << sweep.point_of(result.run) << " ("
          << in_words(sweep.points[sweep.point_of(result.run)]) << "), seed "
          << sweep.seed_of(result.run) << ": " << *result.error << std::endl;
    }
    results[result.run] = result;
    progress.show(++done);
  });
  return results;
}

void write_files(const SweepDirectory& directory, const Sweep& sweep,
                 const std::vector<RunResult>& results, std::size_t rank_column) {
  std::string lines;
  for (const RunResult& result : results) lines += to_json(result, sweep).dump() + "\n";
  directory.replace(results_file_name, lines);
  directory.replace("results.csv", results_csv(results, sweep));
  directory.replace("summary.json", summary_json(sweep, results, rank_column).dump(2) + "\n");
}

ExitCode exit_code(const std::vector<RunResult>& results) {
  const auto any = [&](auto has) { return std::ranges::any_of(results, has); };
  if (any([](const RunResult& r) { return r.error || (r.expected && r.verdict == Verdict::fail); }))
    return ExitCode::failed;
  const bool unknown =
      any([](const RunResult& r) { return r.expected && r.verdict == Verdict::unknown; });
  return unknown ? ExitCode::unknown : ExitCode::pass;
}

}  // namespace

ExitCode sweep(Arguments arguments, std::ostream& out, std::ostream& err) {
  const SweepOptions options = read_options(arguments);
  if (options.help) {
    out << introduction << shown_options() << explanation;
    return ExitCode::pass;
  }
  Sweep sweep;
  blaming_overrides(options.overrides,
                    [&] { sweep = load_sweep(options.file, options.overrides); });
  if (options.dry_run) {
    show_plan(sweep, options, out, err);
    return ExitCode::pass;
  }
  check_memory(largest_together(sweep, options.workers.jobs), options.file);
  std::optional<SweepDirectory> directory;
  if (options.out) directory.emplace(*options.out, sweep);

  const auto results = results_of(sweep, options, directory ? &*directory : nullptr, err);
  if (directory) write_files(*directory, sweep, results, options.rank_column);
  if (options.json) {
    out << summary_json(sweep, results, options.rank_column).dump(2) << '\n';
  } else {
    write_sweep_tables(sweep, results, options.rank_column, options.top, out);
  }
  return exit_code(results);
}

}  // namespace ballast::sim
