#include "sim/simulation/verdict.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "sim/scenario/words.h"

namespace ballast::sim {

namespace {

struct Point {
  std::size_t step;
  double value;
};

/// The values of a metric in the steps that an expectation is about.
std::vector<Point> points_of(const Expectation& expectation, const Simulation& run) {
  std::vector<Point> points;
  const auto take = [&](std::size_t step, const Figures& figures, const std::string& name) {
    if (step < expectation.from || step > expectation.until.value_or(run.scenario().training.steps))
      return;
    if (const auto figure = figures.find(name); figure != figures.end()) {
      points.push_back({step, figure->second});
    }
  };
  if (expectation.metric == "eval_loss") {
    for (const auto& record : run.evaluations()) take(record.step, record.figures, "loss");
  } else {
    for (const auto& record : run.steps()) take(record.step, record.figures, expectation.metric);
  }
  return points;
}

/// How far a value is inside the bounds; negative outside.
double margin(double value, const Expectation& expectation) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (std::isnan(value)) return -infinity;
  return std::min(expectation.at_most ? *expectation.at_most - value : infinity,
                  expectation.at_least ? value - *expectation.at_least : infinity);
}

Point mean_of(const std::vector<Point>& points) {
  double sum = 0.0;
  for (const auto& point : points) sum += point.value;
  return {.step = 0, .value = sum / static_cast<double>(points.size())};
}

Point deciding_point(const std::vector<Point>& points, const Expectation& expectation) {
  const auto by_margin = [&](const Point& point) { return margin(point.value, expectation); };
  switch (expectation.aggregate) {
    case Aggregate::every:
      return *std::ranges::min_element(points, {}, by_margin);
    case Aggregate::any:
      return *std::ranges::max_element(points, {}, by_margin);
    case Aggregate::mean:
      return mean_of(points);
    default:
      return points.back();
  }
}

}  // namespace

std::string_view word(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass:
      return "pass";
    case Verdict::fail:
      return "fail";
    default:
      return "unknown";
  }
}

namespace {

/// Whether a finding is of what is expected (or feared, by `none`).
bool is_meant(CollapseKind found, ExpectedCollapse expected) {
  if (expected == ExpectedCollapse::none || expected == ExpectedCollapse::any) {
    return found != CollapseKind::input_degenerate;
  }
  return word(found) == word(expected);
}

ExpectationOutcome judge_collapse(const Expectation& expectation, const Simulation& run) {
  ExpectationOutcome outcome{.expectation = expectation, .value = {}, .step = {}};
  const CollapseReport report = run.collapse();
  const std::size_t steps = run.scenario().training.steps;
  for (const CollapseFinding& finding : report.findings) {
    const bool within =
        finding.onset >= expectation.from && finding.onset <= expectation.until.value_or(steps);
    if (!within || !is_meant(finding.kind, *expectation.collapse)) continue;
    outcome.step = finding.onset;
    break;
  }
  const bool none = *expectation.collapse == ExpectedCollapse::none;
  const bool known = report.verdict == CollapseVerdict::collapsed ||
                     report.verdict == CollapseVerdict::healthy ||
                     (!none && report.verdict == CollapseVerdict::input_degenerate);
  if (outcome.step) {
    outcome.verdict = none ? Verdict::fail : Verdict::pass;
  } else if (known && expectation.until.value_or(0) <= steps) {
    outcome.verdict = none ? Verdict::pass : Verdict::fail;
  }
  return outcome;
}

}  // namespace

ExpectationOutcome judge(const Expectation& expectation, const Simulation& run) {
  if (expectation.collapse) return judge_collapse(expectation, run);
  ExpectationOutcome outcome{.expectation = expectation, .value = {}, .step = {}};
  const auto points = points_of(expectation, run);
  if (points.empty()) return outcome;
  const Point point = deciding_point(points, expectation);
  outcome.value = point.value;
  if (expectation.aggregate != Aggregate::mean) outcome.step = point.step;
  const bool all_steps_ran = expectation.until.value_or(0) <= run.scenario().training.steps;
  const bool met = margin(point.value, expectation) >= 0.0;
  outcome.verdict = !met ? Verdict::fail : all_steps_ran ? Verdict::pass : Verdict::unknown;
  return outcome;
}

std::vector<ExpectationOutcome> judge(const Simulation& run) {
  std::vector<ExpectationOutcome> outcomes;
  for (const auto& expectation : run.scenario().expect) outcomes.push_back(judge(expectation, run));
  return outcomes;
}

std::vector<ExpectationOutcome> judge(const std::vector<const Simulation*>& runs) {
  std::vector<ExpectationOutcome> outcomes;
  for (const Simulation* run : runs) std::ranges::move(judge(*run), std::back_inserter(outcomes));
  return outcomes;
}

Verdict overall(std::span<const ExpectationOutcome> outcomes) {
  const auto any = [&](Verdict verdict) {
    return std::ranges::any_of(outcomes,
                               [&](const auto& outcome) { return outcome.verdict == verdict; });
  };
  if (any(Verdict::fail)) return Verdict::fail;
  return outcomes.empty() || any(Verdict::unknown) ? Verdict::unknown : Verdict::pass;
}

}  // namespace ballast::sim
