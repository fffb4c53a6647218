#include "props/command/mutants.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "props/command/integer_option.h"
#include "props/command/mutant_report.h"
#include "props/command/select.h"
#include "props/command/select_laws.h"
#include "sim/command/options.h"
#include "sim/text/progress.h"
#include "sim/text/terminal.h"
#include "sim/threads/thread_pool.h"

namespace ballast::props {

namespace po = boost::program_options;

namespace {

constexpr const char* usage = R"(ballast mutants [options]

Holds faulty variants of the built-in stack, each with one fault seen in real routers, balancers, collectors or
metrics, against the laws, under one seed after the other, and tells which law notices which fault, after how many
cases, and how small the counterexample is. It shows what a pass of 'ballast check' is worth.

Examples
  ballast mutants                                 the whole table, a minute or two
  ballast mutants --mutants 'counts-*' --show     these, each with its smallest counterexample
  ballast mutants --mutants qth-rank --laws 'quantile.*,drift.*'
  ballast mutants --seeds 3 --json | jq '.mutants[] | {name, killed_by}'

)";

constexpr const char* exit_codes = R"(
Exit codes: 0 every mutant is killed under every seed and every law kills one; 1 one survives, an equivalent one is
killed, or a law kills none; 2 unknown (no mutant to kill, or the canary shows that the reporting is broken); 3 usage;
70 internal error. That every law kills a mutant is asked only when all laws and mutants take part.
)";

struct MutantsOptions {
  std::vector<std::string> laws;
  std::vector<std::string> mutants;
  KillSettings settings;
  std::size_t jobs = 1;
  bool show = false;
  bool json = false;
  bool help = false;
};

sim::OptionSet option_set() {
  sim::OptionSet set{.named = po::options_description("Options"), .positional = {}};
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  const auto patterns = [] {
    return po::value<std::vector<std::string>>()->composing()->value_name("PATTERN");
  };
  set.named.add_options()("mutants", patterns(), "only these mutants: names with *, several separated by commas")(
      "laws", patterns(), "only these laws: ids with *, several separated by commas")(
      "seeds", text("N"), "seeds, each of which has to kill every mutant (default 20)")(
      "seed", text("N"), "the first of them (default 1)")(
      "cases", text("N"), "cases of every law within which a mutant has to be killed (default 2000)")(
      "jobs", text("N"), "threads (default: all processors); no result depends on it")(
      "show", "also print what each mutant does and its smallest counterexample")(
      "json", "print the table as JSON")("help", "print this text");
  return set;
}

MutantsOptions read_options(sim::Arguments arguments) {
  const auto given = sim::parse_options(option_set(), arguments);
  const auto patterns = [&](const char* name) {
    return given.contains(name) ? given[name].as<std::vector<std::string>>() : std::vector<std::string>();
  };
  const auto read = [&](const char* name, auto& value, auto least, auto most) {
    using Integer = std::remove_reference_t<decltype(value)>;
    if (!given.contains(name)) return;
    value = integer_option<Integer>(name, given[name].as<std::string>(), least, most);
  };
  MutantsOptions options;
  options.laws = patterns("laws");
  options.mutants = patterns("mutants");
  options.show = given.contains("show");
  options.json = given.contains("json");
  options.help = given.contains("help");
  options.jobs = std::clamp(std::thread::hardware_concurrency(), 1u, 256u);
  read("jobs", options.jobs, 1u, 256u);
  read("seeds", options.settings.seeds, 1u, 10'000u);
  read("cases", options.settings.cases, 1u, 1'000'000u);
  read("seed", options.settings.seed, 0u, std::numeric_limits<std::uint64_t>::max() - 10'000u);
  return options;
}

std::vector<Mutant> select_mutants(std::span<const Mutant> mutants, const std::vector<std::string>& patterns) {
  std::vector<std::string> names;
  for (const Mutant& mutant : mutants) names.push_back(mutant.name);
  const Choice choice{.option = "mutants",
                      .noun = "mutant has such a name",
                      .listed_by = "'ballast mutants --seeds 1' lists them; * stands for anything, as in 'counts-*'"};
  std::vector<Mutant> out;
  for (const std::size_t i : select(names, patterns, choice)) out.push_back(mutants[i]);
  return out;
}

/// Runs them with a line of progress on a terminal.
KillTable run_shown(std::span<const Law> laws, std::span<const Mutant> mutants, const MutantsOptions& options,
                    std::ostream& err) {
  const sim::ThreadPool pool(options.jobs);
  sim::Progress line(err, mutants.size(), "mutant");
  return run_mutants(laws, mutants, options.settings, pool,
                     [&](std::size_t done, std::size_t) { line.show(done); });
}

sim::ExitCode exit_code(Verdict verdict) {
  if (verdict == Verdict::pass) return sim::ExitCode::pass;
  return verdict == Verdict::fail ? sim::ExitCode::failed : sim::ExitCode::unknown;
}

}  // namespace

sim::ExitCode mutants(std::span<const Law> all_laws, std::span<const Mutant> all, sim::Arguments arguments,
                      std::ostream& out, std::ostream& err) {
  const MutantsOptions options = read_options(arguments);
  if (options.help) {
    out << usage << option_set().named << exit_codes;
    return sim::ExitCode::pass;
  }
  const std::vector<Law> laws = select_laws(all_laws, options.laws);
  const std::vector<Mutant> chosen = select_mutants(all, options.mutants);
  const KillTable table = run_shown(laws, chosen, options, err);
  const KillContext context{.mutants = chosen,
                            .settings = options.settings,
                            .every_law = laws.size() == all_laws.size() && chosen.size() == all.size(),
                            .show = options.show,
                            .colour = sim::may_colour(out)};
  if (options.json) {
    out << kill_table_json(table, context).dump(2) << "\n";
  } else {
    write_kill_table(table, context, out);
  }
  return exit_code(verdict_of(table, chosen, context.every_law));
}

}  // namespace ballast::props
