#include "sim/command/run_view.h"

#include <algorithm>
#include <functional>
#include <ostream>
#include <span>

#include "core/metrics/load_metrics.h"
#include "core/metrics/moe_metrics.h"
#include "sim/scenario/words.h"
#include "sim/text/printable.h"
#include "sim/text/sparkline.h"
#include "sim/text/terminal.h"

namespace ballast::sim {

namespace {

constexpr std::size_t spark_width = 12;

std::vector<Column> columns(bool with_names) {
  std::vector<Column> all = {{"step", Align::right, 5}};
  if (with_names) all.push_back({"variant", Align::left, 9});
  for (const char* header : {"loss", "used", "over", "max", "worst", "min", "dead"}) {
    all.push_back({header, Align::right, 5});
  }
  all.push_back({"loads", Align::left, spark_width});
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

Tone tone(Verdict verdict) {
  if (verdict == Verdict::pass) return Tone::good;
  return verdict == Verdict::fail ? Tone::bad : Tone::warning;
}

std::string bounds(const Expectation& expectation) {
  std::string text;
  if (expectation.at_least) text += "at least " + fixed(*expectation.at_least, 3);
  if (expectation.at_most) {
    text += (text.empty() ? "at most " : ", at most ") + fixed(*expectation.at_most, 3);
  }
  return text;
}

std::string steps_of(const Expectation& expectation, std::size_t last_step) {
  const std::size_t until = expectation.until.value_or(last_step);
  const std::string range =
      expectation.from == until ? "step " + std::to_string(until)
                                : "steps " + std::to_string(expectation.from) + "-" + std::to_string(until);
  return std::string(word(expectation.aggregate)) + ", " + range;
}

}  // namespace

RunView::RunView(std::ostream& out, const std::vector<Simulation*>& runs, std::size_t rows)
    : out_(out),
      runs_(runs),
      every_(std::max<std::size_t>(1, runs.front()->scenario().training.steps / std::max<std::size_t>(rows, 1))),
      colour_(may_colour(out)),
      table_(columns(runs.size() > 1), may_colour(out)) {
  for (const Simulation* run : runs) last_step_ = std::max(last_step_, run->scenario().training.steps);
}

bool RunView::is_due(std::size_t step) const {
  return step == 1 || step == last_step_ || step % every_ == 0;
}

void RunView::show_step(std::size_t step) {
  if (!header_shown_) {
    out_ << toned("used, over: share of experts with tokens, above fair load. max, min: violation, mean\n"
                  "over layers (0 is perfect balance); worst: the largest of any layer. dead: experts\n"
                  "without tokens. loads: least balanced layer, busiest expert first.\n\n",
                  Tone::faint, colour_);
    out_ << table_.header();
    header_shown_ = true;
  }
  for (const Simulation* run : runs_) {
    if (run->steps().size() < step) continue;
    const StepRecord& record = run->steps()[step - 1];
    const auto figure = [&](const char* name, int digits) {
      const auto found = record.figures.find(name);
      return found == record.figures.end() ? std::string("-") : fixed(found->second, digits);
    };
    Row row = {std::to_string(step)};
    if (runs_.size() > 1) row.push_back(run->scenario().name);
    row.insert(row.end(), {figure("loss", 3), figure(metric_key::frac_with_tokens_mean, 2),
                           figure(metric_key::frac_oversubscribed_mean, 2),
                           figure(metric_key::max_violation_mean, 2),
                           figure(metric_key::max_violation_max, 2),
                           figure(metric_key::min_violation_mean, 2), figure("dead_experts", 0),
                           sparkline(std::span<const std::int64_t>(worst_loads(record.loads)), spark_width)});
    out_ << table_.line(row);
  }
  out_ << std::flush;
}

void RunView::show_outcomes() {
  std::vector<Column> heads = {{"expected", Align::left},
                               {"over", Align::left},
                               {"bounds", Align::left},
                               {"seen", Align::right},
                               {"verdict", Align::left}};
  if (runs_.size() > 1) heads.insert(heads.begin(), {"variant", Align::left});
  std::vector<Row> rows;
  for (const Simulation* run : runs_) {
    for (const auto& outcome : judge(*run)) {
      Row row;
      if (runs_.size() > 1) row.push_back(run->scenario().name);
      row.insert(row.end(), {outcome.expectation.metric,
                             steps_of(outcome.expectation, run->scenario().training.steps),
                             bounds(outcome.expectation), outcome.value ? fixed(*outcome.value, 3) : "-"});
      row.push_back(Cell(std::string(word(outcome.verdict)), tone(outcome.verdict)));
      rows.push_back(std::move(row));
    }
  }
  if (rows.empty()) return;
  out_ << '\n';
  Table(heads, colour_).write(out_, rows);
}

void RunView::show_end(const std::string& digest, Verdict verdict) {
  show_outcomes();
  out_ << "\nverdict: " << toned(word(verdict), tone(verdict), colour_)
       << (verdict == Verdict::unknown ? " (nothing was expected, or there was nothing to judge by)" : "")
       << "\ndigest:  " << digest << '\n';
}

}  // namespace ballast::sim
