#include "sim/collapse/collapse.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/metrics/load_metrics.h"
#include "sim/collapse/noise.h"

namespace ballast::sim {
namespace {

constexpr double expected_hits = 24.0;  ///< of an expert in a window
constexpr std::size_t lasting = 3;      ///< windows
constexpr std::size_t block = 8;        ///< steps in which loads can swing
constexpr std::size_t fifths = 5;

using Steps = std::span<const StepRecord>;
using Counts = std::vector<std::int64_t>;

/// Steps [first, last] taken together.
struct Window {
  std::size_t first = 0, last = 0;  ///< indices of steps
  std::int64_t tokens = 0;
  bool degenerate = false;
};

struct Shape {
  std::size_t layers = 0, experts = 0, top_k = 0;

  double balance() const { return static_cast<double>(top_k) / static_cast<double>(experts); }
  double fair(std::int64_t tokens) const { return static_cast<double>(tokens) * balance(); }
};

/// Whether different inputs are too few to reach all experts.
bool is_degenerate(std::int64_t distinct, const Shape& shape) {
  return distinct > 0 && distinct * static_cast<std::int64_t>(shape.top_k) <
                             static_cast<std::int64_t>(shape.experts);
}

bool is_degenerate(const StepRecord& step, const Shape& shape) {
  return is_degenerate(step.distinct_inputs, shape);
}

std::vector<Window> make_windows(Steps steps, const Shape& shape) {
  std::vector<Window> windows;
  Window open;
  std::int64_t distinct = 0;
  bool counted = true;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    open.tokens += steps[i].tokens;
    distinct += steps[i].distinct_inputs;
    counted &= steps[i].distinct_inputs > 0 || steps[i].tokens == 0;
    if (shape.fair(open.tokens) < expected_hits) continue;
    open.last = i;
    open.degenerate = counted && is_degenerate(distinct, shape);
    windows.push_back(open);
    open = {.first = i + 1};
    distinct = 0;
    counted = true;
  }
  return windows;
}

Counts loads_of(Steps steps, const Window& window, std::size_t layer) {
  Counts sum(steps[window.first].loads[layer].size(), 0);
  for (std::size_t i = window.first; i <= window.last; ++i) {
    for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += steps[i].loads[layer][j];
  }
  return sum;
}

/// The first of `count` indices running at which a condition holds, as an index below `size`.
std::optional<std::size_t> first_run(std::size_t size, std::size_t count,
                                     const std::function<bool(std::size_t)>& holds) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < size; ++i) {
    length = holds(i) ? length + 1 : 0;
    if (length == count) return i + 1 - count;
  }
  return std::nullopt;
}

double max_violation(const Counts& loads) {
  const auto metrics = load_metrics(loads);
  return metrics ? metrics->max_violation : 0.0;
}

/// Onsets as indices of steps, in one layer.
class Layer {
 public:
  Layer(Steps steps, const std::vector<Window>& windows, const Shape& shape, std::size_t layer)
      : steps_(steps), windows_(windows), shape_(shape), layer_(layer) {
    for (const Window& window : windows) loads_.push_back(loads_of(steps, window, layer));
  }

  std::optional<std::size_t> dead_experts() const {
    const std::size_t enough = std::max<std::size_t>(1, (shape_.experts + 7) / 8);
    std::vector<std::size_t> idle(shape_.experts, 0);
    for (std::size_t w = 0; w < windows_.size(); ++w) {
      std::size_t dead = 0;
      for (std::size_t j = 0; j < idle.size(); ++j) {
        idle[j] = loads_[w][j] == 0 && !windows_[w].degenerate ? idle[j] + 1 : 0;
        if (idle[j] >= lasting) ++dead;
      }
      if (dead >= enough) return windows_[w + 1 - lasting].first;
    }
    return std::nullopt;
  }

  std::optional<std::size_t> monopoly() const {
    const auto run =
        first_run(windows_.size(), lasting, [&](std::size_t w) { return is_monopoly(w); });
    return run ? std::optional(windows_[*run].first) : std::nullopt;
  }

  std::optional<std::size_t> oscillation() const {
    const auto run =
        first_run(steps_.size() / block, 2, [&](std::size_t b) { return swings(b * block); });
    return run ? std::optional(*run * block) : std::nullopt;
  }

  std::optional<std::size_t> drift() const {
    std::vector<std::size_t> telling;
    std::vector<double> violation;
    for (std::size_t w = 0; w < windows_.size(); ++w) {
      if (windows_[w].degenerate) continue;
      telling.push_back(w);
      violation.push_back(max_violation(loads_[w]));
    }
    const std::size_t part = telling.size() / fifths;
    if (part < 2) return std::nullopt;
    std::array<double, fifths> mean{};
    for (std::size_t i = 0; i < fifths * part; ++i) {
      mean[i / part] += violation[i] / static_cast<double>(part);
    }
    const double rise = mean.back() - mean.front();
    if (rise <
        std::max(0.5, noise_violation(shape_.fair(windows_.front().tokens), shape_.experts))) {
      return std::nullopt;
    }
    for (std::size_t i = 1; i < fifths; ++i) {
      if (mean[i] - mean[i - 1] < 0.1 * rise) return std::nullopt;
    }
    std::size_t half = 0;
    while (violation[half] < mean.front() + 0.5 * rise) ++half;
    return windows_[telling[half]].first;
  }

 private:
  bool is_monopoly(std::size_t w) const {
    if (windows_[w].degenerate) return false;
    Counts loads = loads_[w];
    const auto k = static_cast<std::ptrdiff_t>(shape_.top_k);
    std::ranges::sort(loads, std::greater<>());
    const auto busiest = std::accumulate(loads.begin(), loads.begin() + k, std::int64_t{0});
    const auto all = std::accumulate(loads.begin(), loads.end(), std::int64_t{0});
    if (all == 0) return false;
    const double balance = shape_.balance();
    const auto beyond = [&](double share) { return (share - balance) / (1.0 - balance); };
    const double of_busiest = static_cast<double>(busiest) / static_cast<double>(all);
    const double of_one = static_cast<double>(loads.front()) * static_cast<double>(shape_.top_k) /
                          static_cast<double>(all);
    if (beyond(of_busiest) < 0.5 && beyond(of_one) < 0.8) return false;
    return max_violation(loads) > noise_violation(shape_.fair(windows_[w].tokens), shape_.experts);
  }

  /// Whether loads swing in the steps [first, first + block).
  bool swings(std::size_t first) const {
    double squares = 0.0, lag_1 = 0.0, lag_2 = 0.0;
    std::int64_t tokens = 0;
    for (std::size_t t = 0; t < block; ++t) {
      if (is_degenerate(steps_[first + t], shape_)) return false;
      tokens += steps_[first + t].tokens;
    }
    if (tokens == 0) return false;
    for (std::size_t j = 0; j < shape_.experts; ++j) {
      std::array<double, block> d{};
      for (std::size_t t = 0; t < block; ++t) {
        const double fair = shape_.fair(steps_[first + t].tokens);
        const auto load = static_cast<double>(steps_[first + t].loads[layer_][j]);
        d[t] = fair > 0.0 ? load / fair - 1.0 : 0.0;
      }
      const double mean = std::accumulate(d.begin(), d.end(), 0.0) / static_cast<double>(block);
      for (double& each : d) each -= mean;
      for (std::size_t t = 0; t < block; ++t) {
        squares += d[t] * d[t];
        if (t >= 1) lag_1 += d[t] * d[t - 1];
        if (t >= 2) lag_2 += d[t] * d[t - 2];
      }
    }
    const auto terms = static_cast<double>(block * shape_.experts);
    const double q = shape_.fair(tokens) / static_cast<double>(block);
    const double chance = std::sqrt((1.0 - shape_.balance()) / q);
    const bool large = std::sqrt(squares / terms) >= std::max(0.5, 3.0 * chance);
    return large && std::min(lag_1, lag_2) <= -0.5 * squares;
  }

  Steps steps_;
  const std::vector<Window>& windows_;
  Shape shape_;
  std::size_t layer_;
  std::vector<Counts> loads_;  ///< `[windows][experts]`
};

std::optional<double> figure(const StepRecord& step, const char* name) {
  const auto found = step.figures.find(name);
  return found == step.figures.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::size_t> divergence(Steps steps) {
  double first_range = 0.0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto loss = figure(steps[i], "loss");
    if (loss && steps[i].tokens > 0 && !std::isfinite(*loss)) return i;
    const double range = figure(steps[i], "bias_range").value_or(0.0);
    if (!std::isfinite(range)) return i;
    if (first_range == 0.0) first_range = range;
    if (first_range > 0.0 && range > std::max(4.0, 16.0 * first_range)) return i;
  }
  return std::nullopt;
}

std::optional<std::size_t> blindness(Steps steps, const Shape& shape) {
  return first_run(steps.size(), block, [&](std::size_t i) {
    const auto gradient = figure(steps[i], "router_gradient");
    if (!gradient || !(*gradient < 1e-5) || steps[i].tokens == 0) return false;
    const double even = 2.0 * noise_violation(shape.fair(steps[i].tokens), shape.experts);
    return std::ranges::all_of(steps[i].loads,
                               [&](const Counts& loads) { return max_violation(loads) < even; });
  });
}

class Findings {
 public:
  explicit Findings(Steps steps) : steps_(steps) {}

  void add(CollapseKind kind, std::optional<std::size_t> index) {
    if (!index) return;
    const std::size_t onset = steps_[*index].step;
    const auto known = std::ranges::find(all_, kind, &CollapseFinding::kind);
    if (known == all_.end()) {
      all_.push_back({.kind = kind, .onset = onset, .layers = 1});
    } else {
      known->onset = std::min(known->onset, onset);
      ++known->layers;
    }
  }

  std::vector<CollapseFinding> in_order() && {
    std::ranges::stable_sort(all_, {}, &CollapseFinding::onset);
    return std::move(all_);
  }

 private:
  Steps steps_;
  std::vector<CollapseFinding> all_;
};

CollapseVerdict verdict_of(const std::vector<CollapseFinding>& findings,
                           const std::vector<Window>& windows) {
  const auto is_collapse = [](const CollapseFinding& finding) {
    return finding.kind != CollapseKind::input_degenerate;
  };
  if (std::ranges::any_of(findings, is_collapse)) return CollapseVerdict::collapsed;
  const auto telling = std::ranges::count(windows, false, &Window::degenerate);
  if (telling >= static_cast<std::ptrdiff_t>(lasting)) return CollapseVerdict::healthy;
  return findings.empty() ? CollapseVerdict::unknown : CollapseVerdict::input_degenerate;
}

}  // namespace

std::string_view word(CollapseKind kind) {
  constexpr std::array<std::string_view, 7> words = {"dead_experts",    "monopoly",   "oscillation",
                                                     "drift",           "divergence", "blind",
                                                     "input_degenerate"};
  return words[static_cast<std::size_t>(kind)];
}

std::string_view word(CollapseVerdict verdict) {
  constexpr std::array<std::string_view, 4> words = {"healthy", "collapsed", "input_degenerate",
                                                     "unknown"};
  return words[static_cast<std::size_t>(verdict)];
}

std::optional<CollapseFinding> CollapseReport::find(CollapseKind kind) const {
  const auto found = std::ranges::find(findings, kind, &CollapseFinding::kind);
  return found == findings.end() ? std::nullopt : std::optional(*found);
}

CollapseReport find_collapse(Steps steps, std::size_t top_k) {
  if (steps.empty() || steps.front().loads.empty()) return {};
  const Shape shape{.layers = steps.front().loads.size(),
                    .experts = steps.front().loads.front().size(),
                    .top_k = top_k};
  if (top_k >= shape.experts) return {};  // there is nothing to choose
  const std::vector<Window> windows = make_windows(steps, shape);
  Findings findings(steps);
  findings.add(CollapseKind::divergence, divergence(steps));
  for (std::size_t l = 0; l < shape.layers; ++l) {
    const Layer layer(steps, windows, shape, l);
    findings.add(CollapseKind::dead_experts, layer.dead_experts());
    findings.add(CollapseKind::monopoly, layer.monopoly());
    findings.add(CollapseKind::oscillation, layer.oscillation());
    findings.add(CollapseKind::drift, layer.drift());
  }
  findings.add(CollapseKind::blind, blindness(steps, shape));
  const auto degenerate =
      first_run(windows.size(), lasting, [&](std::size_t w) { return windows[w].degenerate; });
  if (degenerate) findings.add(CollapseKind::input_degenerate, windows[*degenerate].first);
  CollapseReport report;
  report.findings = std::move(findings).in_order();
  report.verdict = verdict_of(report.findings, windows);
  return report;
}

}  // namespace ballast::sim
