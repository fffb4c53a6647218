#include "sim/sweep/columns.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "core/arithmetic/functions.h"
#include "core/metrics/moe_metrics.h"

namespace ballast::sim {
namespace {

using Steps = std::span<const StepRecord>;
using Value = std::optional<double>;

/// The last tenth of the steps, at least one.
Steps final_steps(const Simulation& run) {
  const Steps steps = run.steps();
  return steps.last(std::max<std::size_t>(1, steps.size() / 10));
}

std::vector<double> values_of(Steps steps, const std::string& figure) {
  std::vector<double> values;
  for (const StepRecord& record : steps) {
    if (const auto found = record.figures.find(figure); found != record.figures.end()) {
      values.push_back(found->second);
    }
  }
  return values;
}

Value mean(Steps steps, const std::string& figure) {
  const auto values = values_of(steps, figure);
  if (values.empty()) return std::nullopt;
  const double result =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  return std::isfinite(result) ? Value(result) : std::nullopt;
}

Value final_max_violation(const Simulation& run) {
  return mean(final_steps(run), metric_key::max_violation_mean);
}

Value worst_max_violation(const Simulation& run) {
  const Steps steps = run.steps();
  const auto values =
      values_of(steps.last(steps.size() - steps.size() / 2), metric_key::max_violation_max);
  if (values.empty()) return std::nullopt;
  return *std::ranges::max_element(values);
}

/// What sampling alone does to the largest load: a router in perfect balance shows a max violation
/// of about sqrt(2 ln E (1 - k/E) / q) at a fair load of q assignments (largest of E nearly normal
/// counts).
double sampling_noise(const RouterSettings& router, std::int64_t tokens) {
  const auto experts = static_cast<double>(router.routed_experts);
  const auto top_k = static_cast<double>(router.top_k);
  const double fair_load = static_cast<double>(tokens) * top_k / experts;
  return std::sqrt(2.0 * arithmetic::log(experts) * (1.0 - top_k / experts) / fair_load);
}

bool in_balance(Steps window, const RouterSettings& router) {
  const Value violation = mean(window, metric_key::max_violation_mean);
  if (!violation) return false;
  return *violation <= 0.5 + 1.5 * sampling_noise(router, window.front().tokens);
}

Value steps_to_balance(const Simulation& run) {
  constexpr std::size_t window = 10;
  const Steps steps = run.steps();
  for (std::size_t first = 0; first < steps.size(); ++first) {
    const Steps here = steps.subspan(first, std::min(window, steps.size() - first));
    if (here.front().tokens > 0 && in_balance(here, run.scenario().model.moe.router)) {
      return static_cast<double>(first + 1);
    }
  }
  return std::nullopt;
}

Value dead_experts(const Simulation& run) {
  return mean(final_steps(run), "dead_experts");
}

/// The first finding that is a collapse, and not of the data.
const CollapseFinding* first_collapse(const CollapseReport& report) {
  for (const CollapseFinding& finding : report.findings) {
    if (finding.kind != CollapseKind::input_degenerate) return &finding;
  }
  return nullptr;
}

Value collapse_onset(const Simulation& run) {
  const CollapseReport report = run.collapse();
  if (const auto* first = first_collapse(report)) return static_cast<double>(first->onset);
  if (report.verdict != CollapseVerdict::healthy) return std::nullopt;
  return std::numeric_limits<double>::infinity();
}

Value loss(const Simulation& run) {
  return mean(final_steps(run), "loss");
}

}  // namespace

const std::vector<RunColumn>& run_columns() {
  static const std::vector<RunColumn> columns = {
      {"final_max_violation", "max viol",
       "max violation, mean over layers and the last tenth of the steps", true,
       final_max_violation},
      {"worst_max_violation", "worst",
       "the largest max violation of any layer in the second half of the run", true,
       worst_max_violation},
      {"steps_to_balance", "steps",
       "the first step from which max violation is, on average over ten steps, at most 0.5 plus "
       "1.5 times what sampling noise alone gives; none when that never comes",
       true, steps_to_balance},
      {"dead_experts", "dead",
       "experts without tokens, of all layers, mean over the last tenth of the steps", true,
       dead_experts},
      {"collapse_onset", "onset",
       "the first step of the first collapse; none when there is none, and no value when it cannot "
       "be told, for want of tokens or because the data was degenerate",
       false, collapse_onset, true},
      {"loss", "loss", "training loss, mean over the last tenth of the steps", true, loss},
  };
  return columns;
}

std::optional<std::size_t> find_column(std::string_view name) {
  const auto& columns = run_columns();
  const auto found = std::ranges::find(columns, name, &RunColumn::name);
  if (found == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns.begin());
}

std::string_view collapse_kind(const CollapseReport& report) {
  if (const auto* first = first_collapse(report)) return word(first->kind);
  return report.verdict == CollapseVerdict::healthy ? "none" : word(report.verdict);
}

Json figure_json(const Value& figure) {
  if (!figure) return nullptr;
  return std::isinf(*figure) ? Json("none") : Json(*figure);
}

bool read_figure(const Json& value, Value& figure) {
  figure = std::nullopt;
  if (value.is_number()) figure = value.get<double>();
  if (value == "none") figure = std::numeric_limits<double>::infinity();
  return figure || value.is_null();
}

}  // namespace ballast::sim
