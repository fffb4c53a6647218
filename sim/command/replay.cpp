#include "sim/command/replay.h"

#include <boost/program_options/value_semantic.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/command/options.h"
#include "sim/command/scenario_options.h"
#include "sim/input_error.h"
#include "sim/output/run_json.h"
#include "sim/replay/divergence.h"
#include "sim/replay/recorder.h"
#include "sim/replay/recording_file.h"
#include "sim/scenario/memory.h"
#include "sim/simulation/side_by_side.h"
#include "sim/text/numbers.h"
#include "sim/text/printable.h"
#include "sim/text/progress.h"
#include "sim/usage_error.h"

namespace ballast::sim {

namespace po = boost::program_options;

namespace {

constexpr const char* introduction = R"(Usage: ballast replay [OPTION...] RECORDING

Runs a recording again, which 'ballast run --record' made, and compares every
choice, weight, bias and loss with it. Where they part it names the first step,
layer, token and expert, and stops there.

)";

constexpr const char* explanation = R"(
A recording is one line of JSON (format, version, a fingerprint of the numerics,
and the complete scenario), and then a frame for each step of each run: digests,
biases, every choice (1 byte up to 255 experts, 2 up to 65535), and 16 bits of
every weight. Frames carry checksums, so that damage is told from divergence.
A file of tokens that the scenario names is not in it.

A recording of another version, or with other numerics, is refused. The
compiler, its options, the processor and the number of threads make no
difference.

Exit codes: 0 the runs are the same to the bit; 3 usage; 4 no recording, a
damaged one, or one of another version or other numerics; 5 the replay differs;
70 internal error.

Examples:
  ballast run my.json --record my.recording
  ballast replay my.recording
  ballast replay my.recording --json | jq '{step, layer, token, expert}'
)";

po::options_description shown_options() {
  po::options_description shown("Options");
  shown.add_options()("threads", po::value<std::int64_t>()->value_name("N"),
                      "default: all processors; changes no result")(
      "json", "print the outcome as JSON")("help", "print this text");
  return shown;
}

/// Compares the frames of a replay with those of the recording, one by one.
class Comparison {
 public:
  Comparison(RecordingReader& reader, const std::vector<Scenario>& scenarios,
             const std::string& file)
      : reader_(reader), scenarios_(scenarios), file_(file) {}

  /// Whether these frames are the next ones of the recording.
  bool same(const std::vector<Frame>& replayed) {
    for (const Frame& frame : replayed) {
      const auto recorded = reader_.next();
      if (!recorded) refuse("it ends before its runs do");
      found_ = divergence(*recorded, frame, scenarios_[frame.run]);
      if (found_) return false;
    }
    return true;
  }

  void expect_end() {
    if (reader_.next()) refuse("it goes on after the end of its runs");
  }

  const std::optional<Divergence>& found() const { return found_; }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw InputError({.what = "cannot replay the recording",
                      .where = file_,
                      .why = why,
                      .right = "record the run again"});
  }

  RecordingReader& reader_;
  const std::vector<Scenario>& scenarios_;
  const std::string& file_;
  std::optional<Divergence> found_;
};

/// Runs until the first difference, or to the end.
void compare_runs(SideBySide& runs, Recorders& recorders, Comparison& comparison,
                  std::ostream& err) {
  Progress progress(err, runs.steps(), "step");
  progress.show(0);
  if (!comparison.same(recorders.take())) return;
  for (std::size_t step = 1; step <= runs.steps(); ++step) {
    runs.advance_to(step);
    if (!comparison.same(recorders.take())) return;
    progress.show(step);
  }
  if (comparison.same(Recorders::ends(runs.runs()))) comparison.expect_end();
}

std::string name_of(const ScenarioFile& file, std::size_t run) {
  return file.variants.empty() ? file.common.name : file.variants[run].name;
}

Json divergence_json(const Divergence& found, const ScenarioFile& file, const Scenario& scenario) {
  Json json = {{"verdict", "diverged"},
               {"run", name_of(file, found.run)},
               {"what", word(found.what)},
               {"step", found.step}};
  const auto put = [&](const char* key, const auto& value) {
    json[key] = value ? Json(*value) : Json(nullptr);
  };
  put("layer", found.layer);
  put("token", found.token);
  put("expert", found.expert);
  if (found.what == Divergence::What::choice) put("recorded_expert", found.recorded_expert);
  if (found.token) {
    const TokenPlace place = place_of_token(*found.token, scenario);
    json["place"] = {{"rank", place.rank},
                     {"micro_batch", place.micro_batch},
                     {"sequence", place.sequence},
                     {"position", place.position}};
  }
  return json;
}

ExitCode show(const std::optional<Divergence>& found, const ScenarioFile& file,
              const std::vector<Scenario>& scenarios, const SideBySide& runs, bool json,
              std::ostream& out) {
  if (!found) {
    const std::string digest = digest_of(file, runs.runs());
    if (json) {
      out << Json({{"verdict", "same"}, {"name", file.common.name}, {"digest", digest}}).dump(2)
          << '\n';
    } else {
      out << printable(file.common.name) << ": the replay is the same, to the bit ("
          << counted(runs.runs().size(), "run") << ", " << counted(runs.steps(), "step")
          << ")\ndigest: " << digest << '\n';
    }
    return ExitCode::pass;
  }
  const Scenario& scenario = scenarios[found->run];
  if (json) {
    out << divergence_json(*found, file, scenario).dump(2) << '\n';
  } else {
    out << wrapped(printable(name_of(file, found->run)) + ": the replay diverges at " +
                       in_words(*found, scenario),
                   80, 0);
  }
  return ExitCode::diverged;
}

}  // namespace

ExitCode replay(Arguments arguments, std::ostream& out, std::ostream& err) {
  const auto given = parse_options(with_words(shown_options(), "recording"), arguments);
  if (given.contains("help")) {
    out << introduction << shown_options() << explanation;
    return ExitCode::pass;
  }
  const std::string name = only_file(given, "recording", "give one");
  if (name.empty())
    throw UsageError("replay needs a RECORDING; 'ballast replay --help' explains it");
  const std::size_t threads = count_option(given, "threads", most_threads, processors());

  RecordingReader reader(name);
  const std::vector<Scenario> scenarios = expand(reader.scenario());
  check_memory(scenarios, name);
  Recorders recorders(scenarios);
  const auto observers = recorders.observers();
  SideBySide runs(scenarios, threads, observers);
  Comparison comparison(reader, scenarios, name);
  compare_runs(runs, recorders, comparison, err);
  return show(comparison.found(), reader.scenario(), scenarios, runs, given.contains("json"), out);
}

}  // namespace ballast::sim
