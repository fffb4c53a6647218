#include "sim/command/shrink.h"

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/command/options.h"
#include "sim/command/scenario_options.h"
#include "sim/input_error.h"
#include "sim/output/new_file.h"
#include "sim/scenario/fields.h"
#include "sim/scenario/givens.h"
#include "sim/scenario/memory.h"
#include "sim/scenario/scenario_file.h"
#include "sim/shrink/shrink.h"
#include "sim/simulation/side_by_side.h"
#include "sim/text/nearest.h"
#include "sim/text/numbers.h"
#include "sim/text/printable.h"
#include "sim/text/table.h"
#include "sim/usage_error.h"

namespace ballast::sim {

namespace po = boost::program_options;

namespace {

constexpr const char* introduction = R"(Usage: ballast shrink [OPTION...] SCENARIO

Makes a failing scenario smaller, field by field, as long as the same
expectation fails for the same reason: fewer steps, layers, tokens, experts, a
narrower model, no faults, a simpler distribution of tokens.

)";

constexpr const char* explanation = R"(
The first expectation that fails is the one that is kept; its value has to stay
on the same side of its bounds. --keep pass shrinks a scenario whose
expectations all hold, to the smallest one in which they still do: for scenarios
that expect a collapse. With fewer steps, the steps that expectations and faults
are about go along in proportion. A layer's fair load stays at 8 assignments at
least, or at what it was, so that no sampling noise is taken for imbalance.

What is tried is told on stderr. Without --out the smallest scenario is printed.

Exit codes: 0 done; 3 usage, --set included; 4 bad scenario file, or one that
does not fail (with --keep pass: does not hold); 70 internal error, or a file
that cannot be written.

Examples:
  ballast shrink failing.json --out small.json
  ballast shrink scenarios/collapse/collapse-emerges.json --variant none-1 \
    --keep pass --out small.json
  ballast shrink failing.json --json | jq .attempts
)";

struct ShrinkOptions {
  std::string file;
  std::vector<Override> overrides = {};
  Keep keep = Keep::fail;
  std::optional<std::string> variant = std::nullopt;
  std::optional<std::string> out = std::nullopt;
  std::size_t budget = 300;
  std::size_t threads = 1;
  bool json = false;
  bool help = false;
};

po::options_description shown_options() {
  po::options_description shown("Options");
  shown.add_options()("keep", po::value<std::string>()->value_name("VERDICT"),
                      "what the smaller scenario keeps: fail (default) or pass")(
      "variant", po::value<std::string>()->value_name("NAME"),
      "the variant to shrink; default: the first one that fails")(
      "set", po::value<std::vector<std::string>>()->composing()->value_name("PATH=VALUE"),
      "set a field before; may be repeated")("seed", po::value<std::string>()->value_name("N"),
                                             "the same as --set seed=N")(
      "out", po::value<std::string>()->value_name("FILE"),
      "write the smallest scenario into a new file")(
      "budget", po::value<std::int64_t>()->value_name("N"), "run at most so many; default: 300")(
      "threads", po::value<std::int64_t>()->value_name("N"),
      "default: all processors; changes no result")("json", "print what was tried as JSON")(
      "help", "print this text");
  return shown;
}

Keep keep_option(const po::variables_map& given) {
  if (!given.contains("keep")) return Keep::fail;
  const auto& word = given["keep"].as<std::string>();
  if (word == "fail") return Keep::fail;
  if (word == "pass") return Keep::pass;
  throw UsageError("--keep " + word + ": there are fail and pass");
}

ShrinkOptions read_options(Arguments arguments) {
  const auto given = parse_options(with_words(shown_options(), "scenario"), arguments);
  if (given.contains("help")) return {.file = {}, .help = true};
  ShrinkOptions options{.file = only_file(given, "scenario", "give one"),
                        .overrides = overrides_of(given),
                        .keep = keep_option(given),
                        .variant = std::nullopt,
                        .out = std::nullopt,
                        .budget = count_option(given, "budget", 1'000'000, 300),
                        .threads = count_option(given, "threads", most_threads, processors()),
                        .json = given.contains("json")};
  if (options.file.empty())
    throw UsageError("shrink needs a SCENARIO; 'ballast shrink --help' explains it");
  if (given.contains("variant")) options.variant = given["variant"].as<std::string>();
  if (given.contains("out")) options.out = given["out"].as<std::string>();
  return options;
}

/// The runs among which is chosen: the named variant, or all.
std::vector<Scenario> candidates(const ScenarioFile& file, const ShrinkOptions& options) {
  const std::vector<Scenario> runs = expand(file);
  std::vector<std::string> names;
  for (const Variant& variant : file.variants) names.push_back(variant.name);
  if (!options.variant) {
    if (options.keep == Keep::pass && runs.size() > 1) {
      std::string all;
      for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
      throw UsageError("--keep pass: there are several variants; name one by --variant: " + all);
    }
    return runs;
  }
  const auto found = std::ranges::find(names, *options.variant);
  if (found == names.end()) {
    throw UsageError("--variant " + *options.variant + ": the scenario has no such variant." +
                     did_you_mean(*options.variant, names));
  }
  return {runs[static_cast<std::size_t>(found - names.begin())]};
}

/// The first of the runs that shows what is to be kept.
Aim find_aim(const std::vector<Scenario>& runs, const ShrinkOptions& options) {
  for (const Scenario& scenario : runs) {
    SideBySide alone({&scenario, 1}, options.threads);
    alone.advance_to(alone.steps());
    if (auto aim = aim_at(*alone.runs().front(), options.keep)) return *aim;
  }
  const bool fail = options.keep == Keep::fail;
  throw InputError({.what = "there is nothing to shrink",
                    .where = options.file,
                    .why = fail ? "no expectation fails" : "its expectations do not all hold",
                    .right = fail ? "--keep pass shrinks a scenario whose expectations hold"
                                  : "without --keep pass the expectation that fails is kept"});
}

/// What the attempts tried, a line each.
void tell(const Attempt& attempt, std::size_t number, Keep keep, std::ostream& err) {
  const char* still = keep == Keep::fail ? "still fails" : "still holds";
  err << "ballast: " << number << ": " << attempt.path << " " << show(attempt.from) << " -> "
      << show(attempt.to) << ": " << (attempt.kept ? still : "no more") << std::endl;
}

std::string described(const Scenario& scenario, Keep keep) {
  return "The smallest scenario found in which " +
         std::string(keep == Keep::fail ? "the expectation still fails" : "the expectations hold") +
         "; shrunk from " + scenario.name + ". " + scenario.description;
}

Json shrunk_json(const Shrunk& shrunk, const ShrinkOptions& options) {
  Json attempts = Json::array();
  for (const Attempt& attempt : shrunk.attempts) {
    attempts.push_back({{"field", attempt.path},
                        {"from", attempt.from},
                        {"to", attempt.to},
                        {"kept", attempt.kept}});
  }
  return {{"name", shrunk.scenario.name},    {"keep", options.keep == Keep::fail ? "fail" : "pass"},
          {"runs", shrunk.attempts.size()},  {"complete", shrunk.complete},
          {"attempts", std::move(attempts)}, {"scenario", to_json(shrunk.scenario)}};
}

void write_changes(const Scenario& before, const Shrunk& shrunk, std::ostream& out) {
  std::vector<Row> rows;
  for (const auto& field : scenario_fields()) {
    if (field.path == "description") continue;
    const Json then = field.get(before), now = field.get(shrunk.scenario);
    const auto text = [](const Json& value) {
      return value.is_array() ? value.dump() : show(value);
    };
    if (then != now) rows.push_back({field.path, text(then), text(now)});
  }
  Table({{"field", Align::left}, {"before"}, {"after"}}, may_colour(out)).write(out, rows);
  out << counted(shrunk.attempts.size(), "smaller scenario") << " tried"
      << (shrunk.complete ? "; nothing more helps" : "; the budget ran out") << '\n';
}

}  // namespace

ExitCode shrink_command(Arguments arguments, std::ostream& out, std::ostream& err) {
  const ShrinkOptions options = read_options(arguments);
  if (options.help) {
    out << introduction << shown_options() << explanation;
    return ExitCode::pass;
  }
  ScenarioFile file;
  blaming_overrides(options.overrides,
                    [&] { file = load_scenario(options.file, options.overrides); });
  const std::vector<Scenario> runs = candidates(file, options);
  check_memory({runs.data(), 1}, options.file);
  std::optional<NewFile> output;
  if (options.out) output.emplace("--out", *options.out);

  const Aim aim = find_aim(runs, options);
  std::size_t number = 0;
  Shrunk shrunk = shrink(aim, options.budget, options.threads, [&](const Attempt& attempt) {
    tell(attempt, ++number, options.keep, err);
  });
  shrunk.scenario.description = described(aim.scenario, options.keep);
  const std::string text = to_json(shrunk.scenario).dump(2) + "\n";
  if (options.json) {
    out << shrunk_json(shrunk, options).dump(2) << '\n';
  } else if (output) {
    write_changes(aim.scenario, shrunk, out);
  } else {
    out << text;
  }
  if (output) {
    output->write(text);
    output->commit();
  }
  return ExitCode::pass;
}

}  // namespace ballast::sim
