#include "props/command/check.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "props/campaign/campaign.h"
#include "props/campaign/failure_store.h"
#include "props/campaign/report.h"
#include "props/command/integer_option.h"
#include "props/command/select_laws.h"
#include "props/subjects/built_in_subject.h"
#include "props/subjects/process_subject.h"
#include "sim/command/options.h"
#include "sim/usage_error.h"
#include "sim/output/output_error.h"
#include "sim/text/progress.h"
#include "sim/text/terminal.h"
#include "sim/threads/thread_pool.h"

namespace ballast::props {

namespace po = boost::program_options;

namespace {

constexpr const char* usage = R"(ballast check [options]

Holds a router, balancer, load collector or metrics function against the laws that every correct one keeps, on
generated cases. The subject is the built-in stack, or any program that speaks the subject protocol over its
stdin and stdout. A law that is broken comes with the smallest case that breaks it, and a line that runs it again.

Examples
  ballast check                                        the built-in stack, all laws
  ballast check --subject 'python3 my_router.py'       a program in any language
  ballast check --laws 'selection.*,weights.*' --cases 2000
  ballast check --time-budget 60s --seed 7             as many cases as a minute has room for
  ballast check --reproduce selection.top-k:1:17 --subject 'python3 my_router.py'
  ballast check --json | jq .verdict

)";

constexpr const char* exit_codes = R"(
Exit codes: 0 every law that could be tested holds; 1 one is broken, or the subject crashed, hung or talked nonsense;
2 unknown (nothing was tested, or not enough to say); 3 usage; 4 bad stored case; 70 internal error, or a file that
cannot be written.
)";

struct CheckOptions {
  std::optional<std::string> subject;
  std::string subject_timeout = "10";
  CampaignSettings campaign;
  std::vector<std::string> laws;
  std::optional<Reproduction> reproduce;
  std::size_t jobs = 1;
  std::string failures = ".ballast/failures";
  std::optional<std::string> junit;
  std::optional<std::string> observations;
  bool json = false;
  bool help = false;
};

sim::OptionSet option_set() {
  sim::OptionSet set{.named = po::options_description("Options"), .positional = {}};
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  set.named.add_options()("subject", text("COMMAND"), "the program to test (default: the built-in stack)")(
      "subject-timeout", text("SECONDS"), "what a single answer of it may take (default 10)")(
      "laws", po::value<std::vector<std::string>>()->composing()->value_name("PATTERN"),
      "only these laws: ids with *, several separated by commas")(
      "cases", text("N"), "cases of every law (default 200; with --time-budget: no limit)")(
      "time-budget", text("TIME"), "begin no case after this time: 60, 90s, 5m")(
      "seed", text("N"), "what the cases are drawn from (default 1)")(
      "jobs", text("N"), "threads, each with its own subject (default: all processors); no result depends on it")(
      "reproduce", text("STRING"), "run one case again, as a failure's report names it: LAW:SEED:INDEX")(
      "failures", text("DIR"), "where failures are kept and replayed from (default .ballast/failures)")(
      "junit", text("FILE"), "also write the results as JUnit XML")(
      "observations", text("FILE"), "also write every case as a line of JSON, as Hypothesis does")(
      "json", "print the results as JSON instead of a table")("help", "print this text");
  return set;
}

/// "60", "60s", "1.5m", "2h", "200ms"
std::chrono::duration<double> time_option(const std::string& name, const std::string& text) {
  double value = 0.0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(result.ptr, text.data() + text.size());
  double factor = 0.0;
  if (unit.empty() || unit == "s") factor = 1.0;
  if (unit == "ms") factor = 1e-3;
  if (unit == "m" || unit == "min") factor = 60.0;
  if (unit == "h") factor = 3600.0;
  const double seconds = value * factor;
  if (result.ec != std::errc() || !(seconds > 0.0) || seconds > 1e7) {
    throw sim::UsageError("--" + name + " " + text + ": is no time above 0; write seconds, as in 60 or 0.5, or " +
                          "with a unit, as in 200ms, 5m or 1h");
  }
  return std::chrono::duration<double>(seconds);
}

Reproduction reproduce_option(const std::string& text) {
  if (auto parsed = parse_reproduction(text)) return *parsed;
  throw sim::UsageError("--reproduce " + text + ": is not LAW:SEED:INDEX, as in selection.top-k:1:17");
}

CheckOptions read_options(sim::Arguments arguments) {
  const auto given = sim::parse_options(option_set(), arguments);
  const auto text = [&](const char* name) -> std::optional<std::string> {
    if (!given.contains(name)) return std::nullopt;
    return given[name].as<std::string>();
  };
  CheckOptions options;
  options.json = given.contains("json");
  options.help = given.contains("help");
  options.subject = text("subject");
  options.subject_timeout = text("subject-timeout").value_or(options.subject_timeout);
  options.failures = text("failures").value_or(options.failures);
  options.junit = text("junit");
  options.observations = text("observations");
  options.jobs = std::clamp(std::thread::hardware_concurrency(), 1u, 256u);
  if (const auto jobs = text("jobs")) options.jobs = integer_option<std::size_t>("jobs", *jobs, 1, 256);
  if (given.contains("laws")) options.laws = given["laws"].as<std::vector<std::string>>();
  CampaignSettings& campaign = options.campaign;
  if (const auto seed = text("seed"))
    campaign.seed = integer_option<std::uint64_t>("seed", *seed, 0, std::numeric_limits<std::uint64_t>::max());
  if (const auto time = text("time-budget")) {
    campaign.time_budget = time_option("time-budget", *time);
    campaign.cases.reset();
  }
  if (const auto cases = text("cases"))
    campaign.cases = integer_option<std::size_t>("cases", *cases, 1, 1'000'000'000);
  if (const auto reproduce = text("reproduce")) {
    options.reproduce = reproduce_option(*reproduce);
    campaign.seed = options.reproduce->seed;
    campaign.only_case = options.reproduce->index;
    campaign.cases = 1;
  }
  campaign.observe = options.observations.has_value();
  campaign.note_running = options.subject.has_value();
  return options;
}

std::chrono::milliseconds answer_time(const CheckOptions& options) {
  return std::chrono::ceil<std::chrono::milliseconds>(time_option("subject-timeout", options.subject_timeout));
}

SubjectPool::Factory factory(const CheckOptions& options) {
  const auto time = answer_time(options);
  if (!options.subject) return [] { return std::make_unique<BuiltInSubject>(); };
  end_children_on_signals();
  return [command = *options.subject, time] {
    return std::make_unique<ProcessSubject>(ProcessSettings{.command = command, .answer_time = time});
  };
}

std::vector<Law> chosen_laws(std::span<const Law> laws, const CheckOptions& options) {
  if (!options.reproduce) return select_laws(laws, options.laws);
  if (!options.laws.empty()) throw sim::UsageError("--laws and --reproduce: which law it is, --reproduce says");
  for (const Law& law : laws) {
    if (law.id == options.reproduce->law) return {law};
  }
  return select_laws(laws, {options.reproduce->law});  // refuses it
}

std::string subject_options(const CheckOptions& options) {
  if (!options.subject) return {};
  std::string text = "--subject " + shell_quoted(*options.subject);
  if (options.subject_timeout != "10") text += " --subject-timeout " + shell_quoted(options.subject_timeout);
  return text;
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw sim::OutputError(path + ": cannot be written; name a file in a folder that exists");
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

void write_results(const CampaignResult& result, const ReportContext& context, const CheckOptions& options,
                   std::ostream& out) {
  if (options.json) {
    out << report_json(result, context).dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    write_report(result, context, out);
  }
  if (options.junit) write_file(*options.junit, junit_xml(result, context));
  if (options.observations) write_file(*options.observations, joined(result.observations));
}

/// Runs the campaign with a line of progress on a terminal.
CampaignResult run_shown(std::span<const Law> laws, SubjectPool& subjects, const CampaignSettings& settings,
                         const Executor& executor, std::ostream& err) {
  std::optional<sim::Progress> line;
  return run_campaign(laws, subjects, settings, executor, [&](std::size_t done, std::size_t total) {
    if (!line) line.emplace(err, total, settings.cases ? "case" : "second");
    line->show(done);
  });
}

sim::ExitCode exit_code(Verdict verdict) {
  if (verdict == Verdict::pass) return sim::ExitCode::pass;
  return verdict == Verdict::fail ? sim::ExitCode::failed : sim::ExitCode::unknown;
}

}  // namespace

sim::ExitCode check(std::span<const Law> all, sim::Arguments arguments, std::ostream& out, std::ostream& err) {
  CheckOptions options = read_options(arguments);
  if (options.help) {
    out << usage << option_set().named << exit_codes;
    return sim::ExitCode::pass;
  }
  const std::vector<Law> laws = chosen_laws(all, options);
  const FailureStore store(options.failures);
  options.campaign.store = &store;
  SubjectPool subjects(factory(options));
  const sim::ThreadPool pool(options.jobs);
  const CampaignResult result = run_shown(laws, subjects, options.campaign, pool, err);
  for (const std::string& note : result.notes) err << "ballast: " << note << "\n";
  const ReportContext context{
      .laws = laws, .subject_options = subject_options(options), .colour = sim::may_colour(out)};
  write_results(result, context, options, out);
  return exit_code(result.verdict);
}

}  // namespace ballast::props
