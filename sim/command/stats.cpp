#include "sim/command/stats.h"

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <ostream>
#include <stdexcept>

#include "sim/command/options.h"
#include "sim/command/stats_report.h"
#include "sim/recordings/field_map.h"
#include "sim/recordings/read_recording.h"
#include "sim/text/printable.h"
#include "sim/usage_error.h"

namespace ballast::sim {
namespace {

namespace po = boost::program_options;
using Words = std::vector<std::string>;

constexpr const char* introduction = R"(Usage: ballast stats [OPTION...] FILE...

Loads and load-balance metrics of recorded routing, layer by layer.

Formats, found by content:
  - JSON lines, a row each: layer, experts [ids], and where recorded
    gating_probs, token_idx, dataset, problem_id;
  - JSON lines, a meta line (num_experts, top_k) and rows of type route: layer,
    topk_ids, topk_weights, token_idx, req_id;
  - other JSON lines, by --map;
  - CSV of loads: expert and count (or count_topk, count_top1), and where known
    model, domain, layer, num_experts, top_k, token_id;
  - one JSON object: selections[token][layer][top_k], or load[layer][expert].

)";

constexpr const char* explanation = R"(
Columns: used, share of experts with tokens; over, share above the fair load
(assignments / experts); max viol, (largest load - fair) / fair; min viol, the
same for the smallest; loads sorted, largest first, a dot for an idle expert.
The last rows are the five metrics: means over layers, and the largest max viol.

Problems are reported, and end nothing. Not counted are: rows that are no JSON,
are cut off, lack a field, or have an expert id out of range, an expert twice, a
wrong number of experts or of weights; and records that were there before (a run
of records from where the token index goes back, each equal to the earlier one
of its sequence, layer and token). Counted all the same are: rows whose weights
do not sum to one; another pass over the tokens; and warm-up rows, a run of at
least 16 (without weights 64) identical rows at the front of a layer, unless
--skip-warmup is given. Missing (sequence, layer, token) cells are named.
Problems are of the whole file, whatever --layer says.

Exit codes: 0 done; 2 a file (or the chosen layer) holds no assignments;
3 usage; 4 a file cannot be read: not there, of no known format, a Git LFS
pointer, meta lines that contradict each other.

Examples:
  ballast stats routes.jsonl
  ballast stats --json --skip-warmup routes.jsonl
  ballast stats --map layer=l,experts=e,token=t --experts 64 log.jsonl
  ballast stats --map layer=/moe/l,experts=/moe/ids,sequence=run+request x.jsonl
)";

OptionSet options() {
  OptionSet set{po::options_description("Options", 80, 40), {}};
  set.named.add_options()("help,h", "this text")("json", "JSON instead of tables")(
      "map", po::value<std::string>()->value_name("PART=FIELD,..."),
      "fields of JSON lines: layer, experts (ids or one id), token, weights, sequence; a FIELD "
      "with / in front is a JSON pointer")(
      "experts", po::value<std::int64_t>()->value_name("N"),
      "experts of a layer; default: the file says, or largest id + 1")(
      "top-k", po::value<std::int64_t>()->value_name("N"),
      "experts a token chooses; default: the file says, or the commonest row length")(
      "layer", po::value<Words>()->value_name("L"), "only this layer (may be repeated)")(
      "skip-warmup", "leave warm-up rows out of the counts");
  return set;
}

void write_help(std::ostream& out) {
  out << introduction << options().named << explanation;
}

std::optional<std::size_t> number(const po::variables_map& values, const char* option) {
  if (!values.contains(option)) return std::nullopt;
  const auto value = values[option].as<std::int64_t>();
  if (value < 1 || value > static_cast<std::int64_t>(max_experts)) {
    throw UsageError(std::string("--") + option + " is " + std::to_string(value) + "; 1 to " +
                     std::to_string(max_experts) + " would be right");
  }
  return static_cast<std::size_t>(value);
}

ReadSettings read_settings(const po::variables_map& values) {
  ReadSettings settings{.schema = std::nullopt,
                        .experts = number(values, "experts"),
                        .top_k = number(values, "top-k"),
                        .skip_warm_up = values.contains("skip-warmup")};
  if (settings.experts && settings.top_k && *settings.top_k > *settings.experts) {
    throw UsageError("--top-k is " + std::to_string(*settings.top_k) + "; at most the " +
                     std::to_string(*settings.experts) + " of --experts would be right");
  }
  if (!values.contains("map")) return settings;
  try {
    settings.schema = parse_field_map(values["map"].as<std::string>());
  } catch (const std::invalid_argument& error) {
    throw UsageError(std::string("--map: ") + error.what() +
                     "; for example layer=l,experts=e,token=t would be right");
  }
  return settings;
}

/// Leaves only the wanted layers; says which there are when that leaves none.
void keep_layers(RecordedRouting& routing, const Words& wanted) {
  std::string names;
  for (const RecordedLayer& layer : routing.layers)
    names += (names.empty() ? "" : ", ") + to_text(layer.layer);
  std::erase_if(routing.layers, [&](const RecordedLayer& layer) {
    return std::find(wanted.begin(), wanted.end(), to_text(layer.layer)) == wanted.end();
  });
  if (routing.layers.empty() && !names.empty()) {
    routing.notes.push_back("no such layer; there are " + printable(names, 200));
  }
}

bool has_assignments(const TraceReport& report) {
  return std::any_of(report.routing.layers.begin(), report.routing.layers.end(),
                     [](const RecordedLayer& layer) { return layer.assignments > 0; });
}

}  // namespace

ExitCode stats(Arguments arguments, std::ostream& out, std::ostream&) {
  const po::variables_map values = parse_options(with_words(options().named, "file"), arguments);
  if (values.contains("help")) {
    write_help(out);
    return ExitCode::pass;
  }
  if (!values.contains("file"))
    throw UsageError("stats needs a FILE; 'ballast stats --help' explains it");
  const ReadSettings settings = read_settings(values);
  std::vector<TraceReport> reports;
  for (const std::string& file : values["file"].as<Words>()) {
    for (RecordedRouting& routing : read_recording(file, settings)) {
      if (values.contains("layer")) keep_layers(routing, values["layer"].as<Words>());
      reports.push_back({file, std::move(routing)});
    }
  }
  if (values.contains("json")) {
    write_stats_json(reports, out);
  } else {
    write_stats_tables(reports, out);
  }
  return std::all_of(reports.begin(), reports.end(), has_assignments) ? ExitCode::pass
                                                                      : ExitCode::unknown;
}

}  // namespace ballast::sim
