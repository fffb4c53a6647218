#include "sim/command/run_view.h"

#include <algorithm>
#include <functional>
#include <ostream>
#include <span>
#include <string_view>
#include <utility>

#include "core/metrics/load_metrics.h"
#include "core/metrics/moe_metrics.h"
#include "sim/output/output_error.h"
#include "sim/output/run_json.h"
#include "sim/scenario/memory.h"
#include "sim/scenario/words.h"
#include "sim/text/numbers.h"
#include "sim/text/printable.h"
#include "sim/text/sparkline.h"
#include "sim/text/terminal.h"

namespace ballast::sim {

namespace {

using Runs = std::vector<const Simulation*>;

constexpr std::size_t line_width = 80, column_gap = 2;
constexpr std::size_t loss_width = 7, share_width = 4, violation_width = 5;

std::size_t last_step(const Runs& runs) {
  std::size_t last = 0;
  for (const Simulation* run : runs) last = std::max(last, run->scenario().training.steps);
  return last;
}

std::size_t experts(const Simulation& run) {
  return run.scenario().model.layers * run.scenario().model.moe.router.routed_experts;
}

/// Text of the scenario on one line, whatever line ends it has.
std::string on_one_line(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return printable(text, 4000);
}

std::string model_in_words(const Scenario& scenario) {
  const RouterSettings& router = scenario.model.moe.router;
  if (scenario.mode == Mode::router_only) {
    return counted(scenario.model.layers, "layer") + ", " +
           counted(router.routed_experts, "expert") + ", top-" + std::to_string(router.top_k) +
           ", routers alone under drawn scores";
  }
  return counted(scenario.model.layers, "layer") + ", " + counted(router.routed_experts, "expert") +
         ", top-" + std::to_string(router.top_k) + ", " +
         std::to_string(scenario.model.moe.shared_experts) + " shared, hidden " +
         std::to_string(router.hidden) + ", " + in_words(parameter_count(scenario)) + " parameters";
}

std::string batch_in_words(const Scenario& scenario) {
  const auto& training = scenario.training;
  const std::size_t tokens = training.ranks * training.micro_batches * training.sequences *
                             scenario.tokens.sequence_length;
  return std::to_string(tokens) + " tokens a step";
}

/// What all the runs have in common, or that they do not.
template <class Words>
std::string common(const Runs& runs, Words words) {
  const std::string first = words(runs.front()->scenario());
  const bool same = std::ranges::all_of(
      runs, [&](const Simulation* run) { return words(run->scenario()) == first; });
  return same ? first : first + " (" + runs.front()->scenario().name + "; variants differ)";
}

std::string names(const Runs& runs) {
  std::string all;
  for (const Simulation* run : runs) all += (all.empty() ? "" : ", ") + run->scenario().name;
  return all;
}

std::vector<Column> step_columns(const Runs& runs, bool with_names) {
  std::size_t name_width = 0, most_experts = 0;
  for (const Simulation* run : runs) {
    name_width = std::max(name_width, display_width(run->scenario().name));
    most_experts = std::max(most_experts, experts(*run));
  }
  const auto digits = [](std::size_t number) { return std::to_string(number).size(); };
  std::vector<Column> all = {
      {"step", Align::right, std::max<std::size_t>(4, digits(last_step(runs)))}};
  if (with_names) {
    all.push_back({"variant", Align::left, std::clamp<std::size_t>(name_width, 7, 12)});
  }
  all.push_back({"loss", Align::right, loss_width});
  for (const char* header : {"used", "over"}) all.push_back({header, Align::right, share_width});
  for (const char* header : {"max", "worst", "min"})
    all.push_back({header, Align::right, violation_width});
  all.push_back({"dead", Align::right, std::max<std::size_t>(4, digits(most_experts))});
  std::size_t taken = 0;
  for (const Column& column : all) taken += column.width + column_gap;
  all.push_back({"loads", Align::left,
                 std::clamp<std::size_t>(line_width - std::min(taken, line_width), 8, 16)});
  return all;
}

/// The loads of the least balanced layer, busiest expert first.
std::vector<std::int64_t> worst_loads(const Loads& loads) {
  const auto violation = [](const std::vector<std::int64_t>& layer) {
    const auto metrics = load_metrics(layer);
    return metrics ? metrics->max_violation : -1.0;
  };
  auto worst = *std::ranges::max_element(loads, {}, violation);
  std::ranges::sort(worst, std::greater<>());
  return worst;
}

Row step_row(const StepRecord& record, std::size_t spark_width) {
  const auto figure = [&](const char* name, std::size_t width, int digits) {
    const auto found = record.figures.find(name);
    return found == record.figures.end() ? std::string("-") : compact(found->second, width, digits);
  };
  return {figure("loss", loss_width, 3),
          figure(metric_key::frac_with_tokens_mean, share_width, 2),
          figure(metric_key::frac_oversubscribed_mean, share_width, 2),
          figure(metric_key::max_violation_mean, violation_width, 2),
          figure(metric_key::max_violation_max, violation_width, 2),
          figure(metric_key::min_violation_mean, violation_width, 2),
          figure("dead_experts", 20, 0),
          sparkline(std::span<const std::int64_t>(worst_loads(record.loads)), spark_width)};
}

Tone tone(Verdict verdict) {
  if (verdict == Verdict::pass) return Tone::good;
  return verdict == Verdict::fail ? Tone::bad : Tone::warning;
}

std::string bounds(const Expectation& expectation) {
  if (!expectation.at_most) return "at least " + shortest(*expectation.at_least);
  if (!expectation.at_least) return "at most " + shortest(*expectation.at_most);
  return shortest(*expectation.at_least) + " to " + shortest(*expectation.at_most);
}

/// "mean 121-150"; "last" of the whole run says it all.
std::string steps_of(const Expectation& expectation, std::size_t last) {
  const std::size_t until = expectation.until.value_or(last);
  const std::string aggregate(word(expectation.aggregate));
  if (expectation.aggregate == Aggregate::last && until == last) return aggregate;
  if (expectation.from > until) return aggregate + " " + std::to_string(expectation.from) + "-";
  const std::string first = expectation.from == until ? "" : std::to_string(expectation.from) + "-";
  return aggregate + " " + first + std::to_string(until);
}

/// The steps in which a collapse may set in.
std::string onset_of(const Expectation& expectation, std::size_t last) {
  return "onset " + std::to_string(expectation.from) + "-" +
         std::to_string(expectation.until.value_or(last));
}

Row outcome_row(const ExpectationOutcome& outcome, std::size_t last, const std::string& indent) {
  if (outcome.expectation.collapse) {
    return {indent + "collapse",
            onset_of(outcome.expectation, last),
            std::string(word(*outcome.expectation.collapse)),
            outcome.step                          ? "yes"
            : outcome.verdict == Verdict::unknown ? "-"
                                                  : "no",
            outcome.step ? std::to_string(*outcome.step) : "",
            Cell(std::string(word(outcome.verdict)), tone(outcome.verdict))};
  }
  return {indent + outcome.expectation.metric,
          steps_of(outcome.expectation, last),
          bounds(outcome.expectation),
          outcome.value ? significant(*outcome.value, 5) : "-",
          outcome.step ? std::to_string(*outcome.step) : "",
          Cell(std::string(word(outcome.verdict)), tone(outcome.verdict))};
}

/// Why an expectation was not met.
std::string shortfall(const ExpectationOutcome& outcome) {
  if (outcome.expectation.collapse) {
    const std::string kind(word(*outcome.expectation.collapse));
    if (outcome.verdict == Verdict::unknown) return "too few tokens to tell collapse from chance";
    return outcome.step ? "routing collapses from step " + std::to_string(*outcome.step)
                        : "routing does not collapse as expected: " + kind;
  }
  const std::string seen = outcome.value ? "is " + significant(*outcome.value, 5) : "has no value";
  const std::string at = outcome.step ? " at step " + std::to_string(*outcome.step) : "";
  return outcome.expectation.metric + " " + seen + at + ", not " + bounds(outcome.expectation);
}

std::string event_in_words(const Simulation& run, Event::Kind kind) {
  std::size_t count = 0;
  const Event* first = nullptr;
  for (const Event& event : run.events()) {
    if (event.kind != kind) continue;
    if (first == nullptr) first = &event;
    ++count;
  }
  if (first == nullptr) return "";
  const std::string step = std::to_string(first->step);
  if (kind == Event::Kind::overflow) {
    return counted(count, "overflow") + " (the optimizer step is skipped; first at step " + step +
           ")";
  }
  return counted(count, "restart") + " (first after step " + step +
         ", from the checkpoint of step " + std::to_string(first->checkpoint) + ")";
}

std::string collapse_in_words(const CollapseReport& report) {
  if (report.findings.empty()) return std::string(word(report.verdict));
  std::string words;
  for (const CollapseFinding& finding : report.findings) {
    words += (words.empty() ? "" : ", ") + std::string(word(finding.kind)) + " from step " +
             std::to_string(finding.onset);
    if (finding.layers > 1) words += " in " + counted(finding.layers, "layer");
  }
  return words;
}

std::string count_in_words(std::span<const ExpectationOutcome> outcomes, Verdict verdict,
                           const char* what) {
  const auto count = static_cast<std::size_t>(std::ranges::count_if(
      outcomes, [&](const auto& outcome) { return outcome.verdict == verdict; }));
  return std::to_string(count) + " of " + counted(outcomes.size(), "expectation") + " " + what;
}

std::string reason(std::span<const ExpectationOutcome> outcomes, Verdict verdict) {
  if (outcomes.empty()) return "nothing was expected";
  if (verdict == Verdict::fail) return count_in_words(outcomes, verdict, "failed");
  if (verdict == Verdict::unknown)
    return count_in_words(outcomes, verdict, "had no value to judge");
  return count_in_words(outcomes, verdict, "met");
}

}  // namespace

RunView::RunView(std::ostream& out, const ScenarioFile& file, Runs runs, std::size_t rows)
    : out_(out),
      file_(file),
      runs_(std::move(runs)),
      every_(std::max<std::size_t>(1, last_step(runs_) / std::max<std::size_t>(rows, 1))),
      colour_(may_colour(out)),
      table_(step_columns(runs_, has_variants()), may_colour(out)) {}

void RunView::show_start() {
  const auto steps = [](const Scenario& scenario) {
    return counted(scenario.training.steps, "step");
  };
  out_ << wrapped(on_one_line(file_.common.name) + ": " + common(runs_, steps) + ", " +
                      common(runs_, batch_in_words) +
                      (has_variants() ? "; side by side: " + names(runs_) : ""),
                  line_width, 0)
       << wrapped(common(runs_, model_in_words), line_width, 2)
       << wrapped(on_one_line(file_.common.description), line_width, 2) << '\n'
       << toned(
              "used, over: share of experts with tokens, and above the fair load. max, min:\n"
              "violation of the fair load, mean over layers (0 is perfect balance); worst: the\n"
              "largest of any layer. dead: experts without tokens. loads: of the least balanced\n"
              "layer, busiest expert first.\n",
              Tone::faint, colour_)
       << '\n'
       << table_.header();
  flush();
}

bool RunView::is_due(std::size_t step) const {
  const auto ends = [&](const Simulation* run) { return run->scenario().training.steps == step; };
  return step == 1 || step % every_ == 0 || std::ranges::any_of(runs_, ends);
}

void RunView::show_step(std::size_t step) {
  for (const Simulation* run : runs_) {
    if (run->steps().size() < step) continue;
    Row row = {std::to_string(step)};
    if (has_variants()) row.push_back(run->scenario().name);
    std::ranges::move(step_row(run->steps()[step - 1], table_.last_width()),
                      std::back_inserter(row));
    out_ << table_.line(row);
  }
  flush();
}

void RunView::show_events() {
  std::string lines;
  for (const Simulation* run : runs_) {
    const std::string overflows = event_in_words(*run, Event::Kind::overflow);
    const std::string restarts = event_in_words(*run, Event::Kind::restart);
    if (overflows.empty() && restarts.empty()) continue;
    lines += wrapped((has_variants() ? run->scenario().name + ": " : "") + overflows +
                         (overflows.empty() || restarts.empty() ? "" : ", ") + restarts,
                     line_width, 0);
  }
  if (!lines.empty()) out_ << '\n' << lines;
}

void RunView::show_collapse() {
  out_ << '\n';
  for (const Simulation* run : runs_) {
    out_ << wrapped("collapse: " + (has_variants() ? run->scenario().name + ": " : "") +
                        collapse_in_words(run->collapse()),
                    line_width, 2);
  }
}

void RunView::show_expectations() {
  std::vector<Row> rows;
  for (const Simulation* run : runs_) {
    const auto outcomes = judge(*run);
    if (outcomes.empty()) continue;
    if (has_variants()) rows.push_back({Cell(run->scenario().name, Tone::strong)});
    for (const auto& outcome : outcomes) {
      rows.push_back(
          outcome_row(outcome, run->scenario().training.steps, has_variants() ? "  " : ""));
    }
  }
  if (rows.empty()) return;
  out_ << '\n';
  Table({{"expectation", Align::left},
         {"over steps", Align::left},
         {"bound", Align::left},
         {"seen", Align::right},
         {"at", Align::right},
         {"verdict", Align::left}},
        colour_)
      .write(out_, rows, line_width);
}

void RunView::show_verdict() {
  const auto outcomes = judge(runs_);
  const Verdict verdict = overall(outcomes);
  out_ << "\nverdict: " << toned(word(verdict), tone(verdict), colour_) << " ("
       << reason(outcomes, verdict) << ")\n";
  for (const Simulation* run : runs_) {
    for (const auto& outcome : judge(*run)) {
      if (outcome.verdict == Verdict::pass) continue;
      out_ << wrapped((has_variants() ? run->scenario().name + ": " : "") + shortfall(outcome),
                      line_width, 2);
    }
  }
  out_ << "digest:  " << digest_of(file_, runs_) << '\n';
}

void RunView::show_end() {
  show_events();
  show_collapse();
  show_expectations();
  show_verdict();
  flush();
}

void RunView::flush() {
  if (!out_.flush()) {
    throw OutputError("cannot write the output: stdout is closed, or the disk behind it is full");
  }
}

}  // namespace ballast::sim
