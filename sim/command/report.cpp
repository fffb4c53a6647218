#include "sim/command/report.h"

#include <boost/program_options/value_semantic.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>
#include <vector>

#include "sim/command/options.h"
#include "sim/output/new_file.h"
#include "sim/report/page.h"
#include "sim/report/run_data.h"
#include "sim/text/printable.h"
#include "sim/usage_error.h"

namespace ballast::sim {

namespace po = boost::program_options;

namespace {

constexpr const char* introduction = R"(Usage: ballast report [OPTION...] DIR

Shows what 'ballast run --out DIR' wrote as one page of HTML: verdict and
expectations, key figures, metrics over the steps, and where the tokens went,
layer by layer. The page needs nothing else: no script, no network.

)";

constexpr const char* explanation = R"(
A file that exists is never overwritten. The same results give the same bytes.

Exit codes: 0 written, whatever the verdict in it; 3 usage; 4 no such results;
70 internal error, or the page cannot be written.

Examples:
  ballast run --out results
  ballast report results
  ballast report results --out page.html
  ballast report results --out again.html --json | jq .verdict
)";

po::options_description shown_options() {
  po::options_description shown("Options");
  shown.add_options()("out", po::value<std::string>()->value_name("FILE"),
                      "the new file; default: DIR/report.html")(
      "json", "print what was written as JSON")("help", "print this text");
  return shown;
}

std::string the_directory(const po::variables_map& given) {
  const auto words = given.contains("results") ? given["results"].as<std::vector<std::string>>()
                                               : std::vector<std::string>();
  if (words.size() == 1) return words.front();
  throw UsageError("report needs one directory of results, as 'ballast run --out' wrote it, and " +
                   std::to_string(words.size()) + " are given");
}

}  // namespace

ExitCode report(Arguments arguments, std::ostream& out, std::ostream& /*err*/) {
  const auto given = parse_options(with_words(shown_options(), "results"), arguments);
  if (given.contains("help")) {
    out << introduction << shown_options() << explanation;
    return ExitCode::pass;
  }
  const std::string directory = the_directory(given);
  const RunDirectory results = read_run_directory(directory);
  const std::string name = given.contains("out")
                               ? given["out"].as<std::string>()
                               : (std::filesystem::path(directory) / "report.html").string();
  const std::string page = report_page(results);
  NewFile file("--out", name);
  file.write(page);
  file.commit();
  const auto verdict = results.summary.at("verdict").get<std::string>();
  if (given.contains("json")) {
    const Json json = {{"report", printable(name, 4096)},
                       {"name", results.summary.at("name")},
                       {"verdict", verdict},
                       {"runs", results.runs.size()},
                       {"bytes", page.size()}};
    out << json.dump(2) << '\n';
  } else {
    out << printable(name) << ": " << printable(results.summary.at("name").get<std::string>())
        << ", verdict " << printable(verdict) << '\n';
  }
  return ExitCode::pass;
}

}  // namespace ballast::sim
