#include "sim/command/route.h"

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sim/command/options.h"
#include "sim/input_error.h"
#include "sim/npy/npy_array.h"
#include "sim/npy/npy_header.h"
#include "sim/output/output_directory.h"
#include "sim/route/route_memory.h"
#include "sim/route/route_summary.h"
#include "sim/route/routing_files.h"
#include "sim/scenario/words.h"
#include "sim/threads/thread_pool.h"
#include "sim/usage_error.h"

namespace ballast::sim {

namespace po = boost::program_options;

namespace {

constexpr std::int64_t most_threads = 1024;
constexpr std::int64_t most_steps = 1'000'000;
constexpr std::size_t most_experts = std::size_t{1}
                                     << 20;  ///< load metrics are defined up to there

constexpr const char* introduction = R"(Usage: ballast route [OPTION...] LOGITS.npy
       ballast route [OPTION...] --hidden H.npy --gate W.npy

Routes one batch of tokens as a model's router would, counts the loads, and
says what the next biases are. LOGITS is [tokens, experts]; H is [tokens,
hidden], W is [experts, hidden], and the logits are then H W^T. These files are
NumPy arrays in C order, of float32, or of uint16 that holds bfloat16, and may
be larger than memory.

)";

constexpr const char* explanation = R"(
Selection is by score + bias: the largest first, equal ones by lower expert, NaN
last. Weights come from scores without biases. BALANCER is none,
quantile:exact, quantile:histogram:BINS or sign:RATE, which is b += RATE
sign(mean load - load). With --groups there are no cutoffs, and so no quantiles.

--out writes, all or nothing, into a new directory:
  indices.npy  int32 [tokens, k]    chosen experts, best first
  weights.npy  float32 [tokens, k]  their weights
  cutoffs.npy  float32 [tokens]     the (k+1)-th largest score + bias; [0] if k = E
  counts.npy   int64 [experts]      assignments of tokens that count
  biases.npy   float32 [experts]    the next biases
  summary.json                      what --json prints
With --steps N, the batch is routed and the biases are moved N times; indices,
weights, cutoffs and counts are those of the last time, under the biases before
it. "before" are the metrics under the biases given, "after" under the next ones.

A token that --mask leaves out is routed, but neither counted nor balanced by; a
token with a score that is not finite is counted, but not balanced by. No result
depends on --threads.

Exit codes: 0 done; 2 no token counts; 3 usage; 4 a file cannot be used; 70
internal error, or results that cannot be written.

Examples:
  ballast route logits.npy --bias b.npy --top-k 8 --out routed
  ballast route logits.npy --top-k 8 --balancer quantile:exact --steps 5 --json
  ballast route --hidden h.npy --gate w.npy --top-k 2 --score softmax --timing
)";

struct RouteOptions {
  std::optional<std::string> logits = std::nullopt, hidden = std::nullopt, gate = std::nullopt;
  std::optional<std::string> bias = std::nullopt, mask = std::nullopt, out = std::nullopt;
  RouteQuestion question = {};
  std::size_t threads = 1;
  bool json = false;
  bool dry_run = false;
  bool help = false;

  /// The file that gives the shape.
  const std::string& input() const { return logits ? *logits : *hidden; }
};

po::options_description shown_options() {
  po::options_description shown("Options", 80, 40);
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  const auto integer = [](const char* name) { return po::value<std::int64_t>()->value_name(name); };
  shown.add_options()("top-k", integer("K"), "experts of a token; needed")(
      "bias", text("B.npy"), "biases, float32 [experts]; default: all 0")(
      "mask", text("M.npy"), "bool or uint8 [tokens], 0 for tokens that do not count")(
      "score", text("WORD"), "sigmoid (the default), softmax or logit")(
      "renormalize", "divide weights by their sum (the default)")(
      "no-renormalize", "leave weights as they are")("scale", po::value<double>()->value_name("X"),
                                                     "factor on all weights; default: 1")(
      "balancer", text("BALANCER"), "default: quantile:histogram:1000")(
      "steps", integer("N"), "how often to route and move the biases; default: 1")(
      "groups", text("G,T"),
      "of G groups of experts, a token chooses the T best, by the sum of the 2 best score + bias")(
      "hidden", text("H.npy"), "hidden states instead of logits")(
      "gate", text("W.npy"), "the gate matrix for them")("out", text("DIR"),
                                                         "write the results into a new directory")(
      "threads", integer("N"), "default: all processors; changes no result")(
      "timing", "tell the time of the stages, in ns per token and expert")(
      "json", "print the summary as JSON, no table")(
      "dry-run", "look at the files and tell the memory it would take; route nothing")(
      "help", "print this text");
  return shown;
}

std::optional<std::string> text(const po::variables_map& given, const char* option) {
  if (!given.contains(option)) return std::nullopt;
  return given[option].as<std::string>();
}

std::size_t number(const po::variables_map& given, const char* option, std::int64_t otherwise,
                   std::int64_t largest) {
  const std::int64_t value = given.contains(option) ? given[option].as<std::int64_t>() : otherwise;
  if (value >= 1 && value <= largest) return static_cast<std::size_t>(value);
  throw UsageError("--" + std::string(option) + " " + std::to_string(value) +
                   ": this is not within 1.." + std::to_string(largest));
}

ScoreFunction score_function(const std::string& name) {
  const auto& words = words_of<ScoreFunction>;
  const auto found = std::find(words.begin(), words.end(), name);
  if (found != words.end()) return static_cast<ScoreFunction>(found - words.begin());
  throw UsageError("--score " + name +
                   ": there is no such score; sigmoid, softmax or logit would be right");
}

BalancerChoice balancer_choice(const std::string& given) {
  if (const auto choice = parse_balancer(given)) return *choice;
  throw UsageError(
      "--balancer " + given +
      ": this is no balancer; none, quantile:exact, quantile:histogram:BINS or sign:RATE would "
      "be right, such as quantile:histogram:1000");
}

ExpertGroups expert_groups(const std::string& given) {
  ExpertGroups groups;
  const char* const end = given.data() + given.size();
  const auto count = std::from_chars(given.data(), end, groups.count);
  if (count.ec == std::errc() && count.ptr != end && *count.ptr == ',') {
    const auto chosen = std::from_chars(count.ptr + 1, end, groups.chosen);
    if (chosen.ec == std::errc() && chosen.ptr == end) return groups;
  }
  throw UsageError("--groups " + given +
                   ": these are no two numbers; G,T such as 8,4 would be right");
}

void read_inputs(const po::variables_map& given, RouteOptions& options) {
  if (given.contains("logits")) {
    const auto& files = given["logits"].as<std::vector<std::string>>();
    if (files.size() > 1) {
      throw UsageError("there are " + std::to_string(files.size()) + " files of logits, '" +
                       files[0] + "' and '" + files[1] + "' among them; give one");
    }
    options.logits = files.front();
  }
  options.hidden = text(given, "hidden");
  options.gate = text(given, "gate");
  if (options.hidden.has_value() != options.gate.has_value()) {
    throw UsageError("--hidden and --gate go together, but only one of them is given");
  }
  if (options.logits.has_value() == options.hidden.has_value()) {
    throw UsageError(options.logits
                         ? "route takes LOGITS.npy or --hidden with --gate, not both"
                         : "route needs LOGITS.npy, or --hidden with --gate; 'ballast route "
                           "--help' explains it");
  }
}

RouterSettings router_settings(const po::variables_map& given) {
  RouterSettings router;
  if (!given.contains("top-k"))
    throw UsageError("route needs --top-k K, the number of experts of a token");
  router.top_k = number(given, "top-k", 0, most_experts);
  if (const auto groups = text(given, "groups")) router.groups = expert_groups(*groups);
  if (const auto word = text(given, "score")) router.score = score_function(*word);
  router.renormalize = !given.contains("no-renormalize");
  if (!router.renormalize && given.contains("renormalize")) {
    throw UsageError(
        "--renormalize and --no-renormalize contradict each other; leave one of them out");
  }
  if (given.contains("scale")) router.routed_scale = given["scale"].as<double>();
  if (!std::isfinite(router.routed_scale)) throw UsageError("--scale: this is not finite");
  return router;
}

RouteOptions read_options(Arguments arguments) {
  const auto given = parse_options(with_words(shown_options(), "logits"), arguments);
  RouteOptions options;
  options.help = given.contains("help");
  if (options.help) return options;
  read_inputs(given, options);
  options.bias = text(given, "bias");
  options.mask = text(given, "mask");
  options.out = text(given, "out");
  options.question.router = router_settings(given);
  if (const auto choice = text(given, "balancer"))
    options.question.balancer = balancer_choice(*choice);
  options.question.steps = number(given, "steps", 1, most_steps);
  options.question.timing = given.contains("timing");
  const std::int64_t processors =
      std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, most_threads);
  options.threads = number(given, "threads", processors, most_threads);
  options.json = given.contains("json");
  options.dry_run = given.contains("dry-run");
  if (options.dry_run && options.out) {
    throw UsageError("--dry-run routes nothing, so there is nothing to write by --out");
  }
  return options;
}

std::unique_ptr<LogitSource> open_logits(const RouteOptions& options) {
  return options.logits ? logits_from_file(*options.logits)
                        : logits_from_hidden(*options.hidden, *options.gate);
}

/// The values of a small file of one dimension of that length.
template <class T>
std::vector<T> read_vector(const NpyArray& array, const std::vector<std::string>& dtypes,
                           const char* types, std::size_t length, const std::string& what_each) {
  if (std::find(dtypes.begin(), dtypes.end(), array.dtype()) == dtypes.end()) {
    array.refuse("its values have the type '" + array.dtype() + "'",
                 std::string(types) + " would be right");
  }
  if (array.shape() != std::vector<std::size_t>{length}) {
    array.refuse("its shape is " + shape_text(array.shape()),
                 "one for " + what_each + ", " + shape_text({length}) + ", would be right");
  }
  std::vector<T> values(length);
  array.read(0, length * sizeof(T), values.data());
  return values;
}

std::vector<float> read_biases(const RouteOptions& options, std::size_t experts) {
  if (!options.bias) return std::vector<float>(experts);
  return read_vector<float>(NpyArray(*options.bias, "cannot read the biases"), {"<f4"},
                            "'<f4' (float32)", experts, "each expert of " + options.input());
}

std::vector<std::uint8_t> read_mask(const RouteOptions& options, std::size_t tokens) {
  if (!options.mask) return {};
  return read_vector<std::uint8_t>(NpyArray(*options.mask, "cannot read the mask"), {"|b1", "|u1"},
                                   "'|b1' (bool) or '|u1' (uint8)", tokens,
                                   "each token of " + options.input());
}

void check_experts(const RouteOptions& options, std::size_t experts) {
  if (experts > most_experts) {
    throw InputError({.what = "cannot route",
                      .where = options.input(),
                      .why = "it has " + std::to_string(experts) + " experts",
                      .right = "at most " + std::to_string(most_experts) + " would be right"});
  }
  if (options.question.router.top_k > experts) {
    throw UsageError("--top-k " + std::to_string(options.question.router.top_k) + ": " +
                     options.input() + " has only " + std::to_string(experts) + " experts");
  }
  const RouterSettings& router = options.question.router;
  if (const auto wrong = problem(router.groups, experts, router.top_k)) {
    throw UsageError("--groups: " + *wrong);
  }
}

BatchBalancer balancer_for(const RouteQuestion& question, std::vector<float> biases) {
  try {
    return BatchBalancer(question.balancer, question.router, std::move(biases));
  } catch (const std::invalid_argument& error) {
    throw UsageError("--balancer " + text(question.balancer) + ": " + error.what());
  }
}

/// What a balancer cannot take comes from the values in the files.
BatchSteps iterate_or_refuse(const RouteOptions& options, const Batch& batch,
                             BatchBalancer& balancer, RoutingSink* sink) {
  const ThreadPool pool(options.threads);
  try {
    return iterate(options.question.router, batch, options.question.steps, balancer, sink, pool);
  } catch (const std::invalid_argument& error) {
    throw InputError({.what = "cannot balance",
                      .where = options.bias ? *options.bias : options.input(),
                      .why = error.what(),
                      .right = ""});
  }
}

/// What would be done, and the memory it would take.
void write_plan(const RouteOptions& options, const LogitSource& logits, std::ostream& out) {
  const RouteQuestion& question = options.question;
  const MemoryEstimate memory =
      estimate_memory(question, logits, options.mask.has_value(), options.threads);
  if (options.json) {
    nlohmann::ordered_json terms;
    for (const MemoryTerm& term : memory.terms) terms[term.name] = term.bytes;
    out << nlohmann::ordered_json{{"tokens", logits.tokens()},
                                  {"experts", logits.experts()},
                                  {"threads", options.threads},
                                  {"memory_bytes", memory.bytes()},
                                  {"memory", terms}}
               .dump(2)
        << "\n";
    return;
  }
  out << logits.tokens() << " tokens of " << options.input() << ", " << logits.experts()
      << " experts, top-" << question.router.top_k << ", " << text(question.balancer)
      << "\nmemory: " << memory_text(memory) << "\n";
}

}  // namespace

ExitCode route(Arguments arguments, std::ostream& out, std::ostream&) {
  RouteOptions options = read_options(arguments);
  if (options.help) {
    out << introduction << shown_options() << explanation;
    return ExitCode::pass;
  }
  RouteQuestion& question = options.question;
  const auto logits = open_logits(options);
  question.router.routed_experts = logits->experts();
  check_experts(options, logits->experts());
  const auto mask = read_mask(options, logits->tokens());
  auto balancer = balancer_for(question, read_biases(options, logits->experts()));

  if (options.dry_run) {
    write_plan(options, *logits, out);
    return ExitCode::pass;
  }

  std::optional<OutputDirectory> directory;
  std::optional<RoutingFiles> files;
  if (options.out) {
    directory.emplace(*options.out);
    files.emplace(*directory, logits->tokens(), question.router.top_k,
                  question.router.top_k < logits->experts() && !question.router.groups.limit());
  }
  const auto result =
      iterate_or_refuse(options, {*logits, mask}, balancer, files ? &*files : nullptr);

  const std::string json = route_json(question, logits->tokens(), result).dump(2) + "\n";
  if (options.json) {
    out << json << std::flush;
  } else {
    write_route_text(question, logits->tokens(), result, out);
  }
  if (directory) {
    files->close();
    write_npy<std::int64_t>(*directory, "counts.npy", result.steps.back().loads);
    write_npy<float>(*directory, "biases.npy", result.biases);
    directory->write("summary.json", json);
    directory->commit();
  }
  return result.after.valid > 0 ? ExitCode::pass : ExitCode::unknown;
}

}  // namespace ballast::sim
