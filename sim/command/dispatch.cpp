#include "sim/command/dispatch.h"

#include <exception>
#include <new>
#include <ostream>
#include <vector>

#include "core/version.h"
#include "sim/input_error.h"
#include "sim/output/output_error.h"
#include "sim/replay/fingerprint.h"
#include "sim/text/nearest.h"
#include "sim/text/printable.h"
#include "sim/text/table.h"
#include "sim/usage_error.h"

namespace ballast::sim {
namespace {

void write_overview(std::span<const Verb> verbs, std::ostream& out) {
  out << "Ballast simulates routing and load balancing of Mixture-of-Experts models.\n\n"
         "Usage: ballast VERB [OPTION...]\n\n";
  Table table({{"  Verb", Align::left}, {"What it does", Align::left}});
  std::vector<Row> rows;
  for (const Verb& verb : verbs) rows.push_back({"  " + verb.name, verb.summary});
  table.write(out, rows);
  out << R"(
'ballast help VERB' or 'ballast VERB --help' explains a verb;
'ballast --version' says which program this is.

Examples
  ballast run                       the built-in quickstart
  ballast run my.json --out results

Exit codes: 0 pass; 1 an expectation or a law failed; 2 unknown: nothing was
tested, or not enough to say; 3 usage; 4 bad input file; 5 a replay diverged;
70 internal error, or output that cannot be written.
)";
}

std::vector<std::string> names(std::span<const Verb> verbs) {
  std::vector<std::string> words;
  for (const Verb& verb : verbs) words.push_back(verb.name);
  for (const char* word : {"help", "--help", "--version"}) words.emplace_back(word);
  return words;
}

const Verb& find_verb(std::span<const Verb> verbs, const std::string& name) {
  for (const Verb& verb : verbs) {
    if (verb.name == name) return verb;
  }
  throw UsageError("there is no verb '" + name + "'." + did_you_mean(name, names(verbs)) +
                   " 'ballast --help' lists the verbs");
}

ExitCode answer_help(std::span<const Verb> verbs, Arguments arguments, std::ostream& out,
                     std::ostream& err) {
  if (arguments.empty()) {
    write_overview(verbs, out);
    return ExitCode::pass;
  }
  const std::vector<std::string> help = {"--help"};
  return find_verb(verbs, arguments[0]).run(help, out, err);
}

ExitCode run(std::span<const Verb> verbs, Arguments arguments, std::ostream& out,
             std::ostream& err) {
  if (arguments.empty()) {
    write_overview(verbs, err);
    return ExitCode::usage;
  }
  const std::string& first = arguments[0];
  const Arguments rest = arguments.subspan(1);
  if (first == "help" || first == "--help" || first == "-h")
    return answer_help(verbs, rest, out, err);
  if (first == "--version") {
    out << "ballast " << version << "\nnumerics " << numerics_fingerprint() << '\n';
    return ExitCode::pass;
  }
  if (rest.size() == 1 && rest[0] == "-h") return answer_help(verbs, arguments.first(1), out, err);
  return find_verb(verbs, first).run(rest, out, err);
}

ExitCode complain(std::ostream& err, const std::string& line, ExitCode code) {
  err << "ballast: " << line << '\n';
  return code;
}

/// Whether the user has been told of a fault already; other codes are results, which stand on
/// stdout.
bool has_complained(ExitCode code) {
  return code == ExitCode::usage || code == ExitCode::bad_input || code == ExitCode::internal;
}

/// Runs, and turns every exception into its line and exit code.
ExitCode run_guarded(std::span<const Verb> verbs, Arguments arguments, std::ostream& out,
                     std::ostream& err) {
  try {
    return run(verbs, arguments, out, err);
  } catch (const UsageError& error) {
    return complain(err, error.what(), ExitCode::usage);
  } catch (const InputError& error) {
    return complain(err, error.what(), ExitCode::bad_input);
  } catch (const OutputError& error) {
    return complain(err, error.what(), ExitCode::internal);
  } catch (const std::bad_alloc&) {
    return complain(err, "out of memory: make the work smaller, or use fewer threads",
                    ExitCode::internal);
  } catch (const std::exception& error) {
    return complain(err, "internal error: " + printable(error.what(), 1000), ExitCode::internal);
  } catch (...) {
    return complain(err, "internal error: an exception of unknown type", ExitCode::internal);
  }
}

}  // namespace

ExitCode dispatch(std::span<const Verb> verbs, Arguments arguments, std::ostream& out,
                  std::ostream& err) {
  const ExitCode code = run_guarded(verbs, arguments, out, err);
  if (out.flush() || has_complained(code)) return code;
  return complain(err, "cannot write the output: stdout is closed, or the disk behind it is full",
                  ExitCode::internal);
}

}  // namespace ballast::sim
