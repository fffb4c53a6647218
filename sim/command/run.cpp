#include "sim/command/run.h"

#include <boost/program_options/value_semantic.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/command/options.h"
#include "sim/command/run_view.h"
#include "sim/command/scenario_options.h"
#include "sim/output/output_directory.h"
#include "sim/output/run_json.h"
#include "sim/output/run_results.h"
#include "sim/replay/recorder.h"
#include "sim/replay/recording_file.h"
#include "sim/scenario/embedded.h"
#include "sim/scenario/memory.h"
#include "sim/scenario/scenario_file.h"
#include "sim/simulation/side_by_side.h"
#include "sim/simulation/verdict.h"
#include "sim/text/numbers.h"
#include "sim/text/printable.h"
#include "sim/text/progress.h"
#include "sim/usage_error.h"

namespace ballast::sim {

namespace po = boost::program_options;

namespace {

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
--record keeps every choice, weight and bias, so that 'ballast replay' can hold
another build or machine against this run: about 3 bytes for each expert that a
token chooses. It changes no result.

Exit codes: 0 every expectation holds; 1 one failed; 2 unknown: nothing was
expected, or there was nothing to judge by; 3 usage, --set included; 4 bad
scenario or token file, or a scenario that does not fit into memory; 70 internal
error, or results that cannot be written.

Examples:
  ballast run
  ballast run my.json --set training.steps=300 --set balancer.kind=none
  ballast run my.json --seed 7 --out results
  ballast run my.json --json | jq .verdict
  ballast run my.json --record my.recording
  ballast run --dry-run > my.json    # the quickstart, to begin a scenario from
)";

struct RunOptions {
  std::optional<std::string> file = std::nullopt;
  std::vector<Override> overrides = {};
  std::optional<std::string> out = std::nullopt;
  std::optional<std::string> record = std::nullopt;
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
      "record", po::value<std::string>()->value_name("FILE"),
      "write a recording into a new file, for 'ballast replay'")(
      "threads", po::value<std::int64_t>()->value_name("N"),
      "default: all processors; changes no result")("json", "print the summary as JSON, no tables")(
      "dry-run", "print the complete scenario and its memory, run nothing")("help", "print this text");
  return shown;
}

std::optional<std::string> scenario_file(const po::variables_map& given) {
  const std::string file =
      only_file(given, "scenario", "give one, and compare settings by its variants");
  return file.empty() ? std::nullopt : std::optional(file);
}

RunOptions read_options(Arguments arguments) {
  const auto given = parse_options(with_words(shown_options(), "scenario"), arguments);
  if (given.contains("help")) return {.help = true};
  RunOptions options{.file = scenario_file(given),
                     .overrides = overrides_of(given),
                     .out = std::nullopt,
                     .record = std::nullopt,
                     .threads = count_option(given, "threads", most_threads, processors()),
                     .json = given.contains("json"),
                     .dry_run = given.contains("dry-run")};
  if (given.contains("out")) options.out = given["out"].as<std::string>();
  if (given.contains("record")) options.record = given["record"].as<std::string>();
  if (options.dry_run && (options.out || options.record)) {
    throw UsageError("--dry-run runs nothing, so there is nothing to write by " +
                     std::string(options.out ? "--out" : "--record") + "; leave one of them out");
  }
  return options;
}

ScenarioFile read_scenario(const RunOptions& options) {
  ScenarioFile file;
  blaming_overrides(options.overrides, [&] {
    file = options.file ? load_scenario(*options.file, options.overrides)
                        : parse_scenario(quickstart_text(), options.origin(), options.overrides);
  });
  return file;
}

/// A recording of the runs, if one is wanted.
class OptionalRecording {
 public:
  OptionalRecording(const std::optional<std::string>& name, const ScenarioFile& file,
                    std::span<const Scenario> scenarios) {
    if (!name) return;
    writer_.emplace(*name, file);
    recorders_.emplace(scenarios);
    observers_ = recorders_->observers();
  }

  std::span<RunObserver* const> observers() const { return observers_; }
  /// After each step of all runs.
  void write_step() {
    if (writer_) writer_->write(recorders_->take());
  }
  void finish(const std::vector<const Simulation*>& runs) {
    if (!writer_) return;
    writer_->write(Recorders::ends(runs));
    writer_->commit();
  }

 private:
  std::optional<RecordingWriter> writer_;
  std::optional<Recorders> recorders_;
  std::vector<RunObserver*> observers_;
};

void simulate(SideBySide& side_by_side, OptionalRecording& recording, RunView* view,
              std::ostream& err) {
  Progress progress(err, side_by_side.steps(), "step");
  progress.show(0);
  recording.write_step();
  for (std::size_t step = 1; step <= side_by_side.steps(); ++step) {
    side_by_side.advance_to(step);
    recording.write_step();
    if (view != nullptr && view->is_due(step)) {
      progress.clear();
      view->show_step(step);
    }
    progress.show(step);
  }
}

/// Pairs of a token and an expert of a layer that routers alone looked at.
double token_experts(const std::vector<const Simulation*>& runs) {
  double pairs = 0.0;
  for (const Simulation* run : runs) {
    const Scenario& scenario = run->scenario();
    if (scenario.mode != Mode::router_only) continue;
    const TrainingSettings& training = scenario.training;
    pairs += static_cast<double>(training.steps * training.ranks * training.micro_batches) *
             static_cast<double>(training.sequences * scenario.tokens.sequence_length) *
             static_cast<double>(scenario.model.layers * scenario.model.moe.router.routed_experts);
  }
  return pairs;
}

void tell_speed(const std::vector<const Simulation*>& runs, double seconds, std::ostream& err) {
  const double pairs = token_experts(runs);
  if (pairs == 0.0) return;
  err << "routers alone: " << significant(pairs, 3) << " token-experts in " << fixed(seconds, 1)
      << " s, " << fixed(1e9 * seconds / pairs, 2) << " ns per token and expert\n";
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
  const auto scenarios = expand(file);
  if (options.dry_run) {
    out << to_json(file).dump(2) << std::endl;
    if (out) err << "memory: " << memory_text(scenarios) << '\n';
    return ExitCode::pass;
  }
  check_memory(scenarios, options.origin());
  std::optional<OutputDirectory> directory;
  if (options.out) {
    check_result_folders(file, options.origin());
    directory.emplace(*options.out);
  }

  OptionalRecording recording(options.record, file, scenarios);
  SideBySide side_by_side(scenarios, options.threads, recording.observers());
  const auto runs = side_by_side.runs();
  RunView view(out, file, runs);
  if (!options.json) view.show_start();
  const auto start = std::chrono::steady_clock::now();
  simulate(side_by_side, recording, options.json ? nullptr : &view, err);
  tell_speed(runs, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
             err);

  // Shown before it is written: a full disk shall not take the verdict as well.
  if (options.json) {
    out << summary_json(file, runs).dump(2) << '\n' << std::flush;
  } else {
    view.show_end();
  }
  recording.finish(runs);
  if (directory) write_results(*directory, file, runs);
  return exit_code(overall(judge(runs)));
}

}  // namespace ballast::sim
