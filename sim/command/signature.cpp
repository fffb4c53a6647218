#include "sim/command/signature.h"

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "sim/command/options.h"
#include "sim/command/scenario_options.h"
#include "sim/input_error.h"
#include "sim/scenario/memory.h"
#include "sim/signature/signature.h"
#include "sim/signature/signature_json.h"
#include "sim/signature/suite.h"
#include "sim/text/numbers.h"
#include "sim/text/printable.h"
#include "sim/text/progress.h"
#include "sim/text/table.h"
#include "sim/threads/thread_pool.h"
#include "sim/usage_error.h"

namespace ballast::sim {

namespace po = boost::program_options;

namespace {

constexpr const char* introduction = R"(Usage: ballast signature [OPTION...] [SCENARIO...]

Prints one digest over what this build computes: elementary functions, sums,
products, random streams, kernels, routers, balancers, losses, a step of
training, batches as 'ballast route' passes over them, and short runs under
every balancer and rule. With scenarios, over the runs of these alone.

)";

constexpr const char* explanation = R"(
Every compiler, optimisation, processor and number of threads must give the
same signature. Where two differ, --compare names the first stage, or the first
step, layer and stage of a run, in the order in which they are computed.

Exit codes: 0 printed, or the same; 3 usage; 4 bad input file, or a signature of
something else; 5 the signatures differ; 70 internal error.

Examples:
  ballast signature
  ballast signature --explain
  ballast signature --explain --json > here.json
  ballast signature --compare here.json       on another build or machine
  ballast signature scenarios/quickstart.json --set training.steps=20
)";

po::options_description shown_options() {
  po::options_description shown("Options");
  shown.add_options()("explain", "print the digest of every stage, step and layer too")(
      "compare", po::value<std::string>()->value_name("FILE"),
      "compare with a file that --explain --json printed")(
      "set", po::value<std::vector<std::string>>()->value_name("PATH=VALUE"),
      "set a field of all scenarios: --set training.steps=50")(
      "seed", po::value<std::string>()->value_name("N"), "the same as --set seed=N")(
      "threads", po::value<std::int64_t>()->value_name("N"),
      "default: all processors; changes no result")("json", "print as JSON")("help",
                                                                             "print this text");
  return shown;
}

struct Work {
  bool stages = false;
  std::vector<ScenarioFile> scenarios;
};

Work work_of(const po::variables_map& given) {
  const auto overrides = overrides_of(given);
  if (!given.contains("scenario")) {
    if (!overrides.empty())
      throw UsageError(overrides.front().where + " sets a field of scenarios; name one");
    return {.stages = true, .scenarios = suite_scenarios()};
  }
  Work work;
  blaming_overrides(overrides, [&] {
    for (const std::string& name : given["scenario"].as<std::vector<std::string>>()) {
      work.scenarios.push_back(load_scenario(name, overrides));
      check_memory(expand(work.scenarios.back()), name);
    }
  });
  return work;
}

Signature compute(const Work& work, std::size_t threads, std::ostream& err) {
  Signature all;
  if (work.stages) all = stage_signature(ThreadPool(threads));
  for (const ScenarioFile& file : work.scenarios) {
    Progress progress(err, expand(file).front().training.steps, "step");
    Signature runs =
        run_signature(file, threads, [&](std::size_t done, std::size_t) { progress.show(done); });
    std::move(runs.begin(), runs.end(), std::back_inserter(all));
  }
  return all;
}

void show(const Signature& signature, bool explain, std::ostream& out) {
  if (explain) {
    std::vector<Row> rows;
    for (const auto& [place, digest] : signature)
      rows.push_back({digest, printable(in_words(place))});
    Table({{"digest", Align::left}, {"of", Align::left}}).write(out, rows);
    out << '\n';
  }
  out << "signature: " << digest_of(signature) << '\n';
}

bool same_places(const Signature& a, const Signature& b) {
  return std::ranges::equal(a, b, {}, &SignatureEntry::place, &SignatureEntry::place);
}

Json difference_json(const std::optional<SignaturePlace>& place) {
  if (!place) return {{"verdict", "same"}};
  Json json = {{"verdict", "differs"}, {"stage", place->stage}};
  if (!place->run.empty()) json["run"] = place->run;
  if (place->step) json["step"] = *place->step;
  if (place->layer) json["layer"] = *place->layer;
  return json;
}

ExitCode compare(const Signature& signature, const std::string& file, bool json,
                 std::ostream& out) {
  const Signature other = load_signature(file);
  if (!same_places(signature, other)) {
    throw InputError({.what = "cannot compare the signatures",
                      .where = file,
                      .why = "it is not of the same stages and runs",
                      .right = "give the scenarios and settings that it was made with"});
  }
  const auto place = first_difference(signature, other);
  if (json) {
    out << difference_json(place).dump(2) << '\n';
  } else if (place) {
    out << wrapped("the signatures differ, first in " + printable(in_words(*place)), 80, 0);
  } else {
    out << "the signatures are the same (" << counted(signature.size(), "digest")
        << ")\nsignature: " << digest_of(signature) << '\n';
  }
  return place ? ExitCode::diverged : ExitCode::pass;
}

}  // namespace

ExitCode signature(Arguments arguments, std::ostream& out, std::ostream& err) {
  const auto given = parse_options(with_words(shown_options(), "scenario"), arguments);
  if (given.contains("help")) {
    out << introduction << shown_options() << explanation;
    return ExitCode::pass;
  }
  const bool explain = given.contains("explain"), json = given.contains("json");
  const bool compares = given.contains("compare");
  if (explain && compares)
    throw UsageError("--explain and --compare answer different questions; leave one of them out");
  const std::size_t threads = count_option(given, "threads", most_threads, processors());

  const Signature computed = compute(work_of(given), threads, err);
  if (compares) return compare(computed, given["compare"].as<std::string>(), json, out);
  if (json) {
    out << signature_json(computed, explain).dump(1) << '\n';
  } else {
    show(computed, explain, out);
  }
  return ExitCode::pass;
}

}  // namespace ballast::sim
